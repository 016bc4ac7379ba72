"""The tracer names what leaves a term of a loss without a graph, though nothing raises and everything trains."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.live.tracing import lines  # noqa: E402


def trained(loss_of: Callable[[torch.nn.Linear, torch.Tensor], torch.Tensor]) -> Callable[[], None]:
    """A program that trains one layer."""
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    def train() -> None:
        for _ in range(3):
            loss = loss_of(layer, torch.randn(4, 3))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return train


def slope(layer: torch.nn.Linear, x: torch.Tensor, *, keep: bool) -> torch.Tensor:
    mixed = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(outputs=layer(mixed).sum(), inputs=[mixed], create_graph=keep)
    return (gradient.norm(dim=1) - 1).square().mean()


def slope_of_each(layer: torch.nn.Linear, x: torch.Tensor, *, keep: bool) -> torch.Tensor:
    mixed = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(layer(mixed).sum(), mixed, create_graph=keep, retain_graph=True)
    return gradient.square().sum(1)


def accuracy(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    return (layer(x).argmax(1) == 0).float().mean()


FEATURES = torch.nn.Linear(2, 2).requires_grad_(False)


@torch.no_grad()
def described(out: torch.Tensor) -> torch.Tensor:
    return FEATURES(out)


def tracked(value: torch.Tensor) -> float:
    return value.mean().item()


def residual(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """Of an equation whose coefficients depend on the place, without `create_graph`."""
    place = x.detach().requires_grad_(True)
    (slope,) = torch.autograd.grad(layer(place).sum(), place)
    return (slope * place.detach().sin()).square().mean()


DEAD = {
    "a number that a helper reads": ("item", lambda layer, x: layer(x).mean() + 0.1 * tracked(layer.weight)),
    "a residual of a detached place": ("grad", lambda layer, x: layer(x).mean() + residual(layer, x)),
    "a penalty without create_graph": ("grad", lambda layer, x: layer(x).mean() + 10 * slope(layer, x, keep=False)),
    "a penalty of each sample": (
        "grad", lambda layer, x: (layer(x)[:, 0] + 10 * slope_of_each(layer, x, keep=False)).mean().mul(2)
    ),
    "a penalty in a list": (
        "grad", lambda layer, x: torch.stack([layer(x).mean(), slope(layer, x, keep=False)]).sum()
    ),
    "a term as a number": ("item", lambda layer, x: layer(x).mean() + 0.1 * layer.weight.norm().item()),
    "a sum of terms": ("__float__", lambda layer, x: sum([layer(x).mean(), float(layer.weight.norm())])),
    "a term of the data of weights": (
        "data", lambda layer, x: layer(x).mean() + torch.nn.functional.linear(x, layer.weight.data).square().mean()
    ),
    "a share of right answers": ("argmax", lambda layer, x: layer(x).mean() - 0.1 * accuracy(layer, x)),
}  # fmt: skip
LOG: list[float] = []


def terms_of(layer: torch.nn.Linear, x: torch.Tensor) -> dict[str, torch.Tensor]:
    out = layer(x)
    return {"mean": out.mean(), "size": out.square().mean(), "slope": layer.weight.norm()}


def read_of(terms: dict[str, torch.Tensor]) -> dict[str, float]:
    return {name: one.item() for name, one in terms.items()}


def of_a_log(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    terms = terms_of(layer, x)
    log = read_of(terms)
    return terms["mean"] + 0.7 * log["size"]


def of_a_name(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    terms = terms_of(layer, x)
    size = float(terms["size"])
    LOG.append(size)
    return 0.3 * size + terms["mean"]


def of_a_loop(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    terms = terms_of(layer, x)
    log, total = read_of(terms), terms["mean"]
    for name, weight in (("size", 0.5), ("slope", 0.25)):
        total = total + weight * log[name]
    return total


def of_a_sum_in_place(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    terms = terms_of(layer, x)
    size = terms["size"].item()
    total = terms["mean"] * 2
    total += size
    return total


def of_a_new_tensor(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    terms = terms_of(layer, x)
    size = terms["size"].item()
    return terms["mean"].clone() + torch.tensor(0.5 * size)


def beside_a_share(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    terms = terms_of(layer, x)
    size = terms["size"].item()
    return (1.0 - terms["mean"]) + 0.5 * size


NUMBERS = [of_a_log, of_a_name, of_a_loop, of_a_sum_in_place, of_a_new_tensor, beside_a_share]


def weighed(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """An adaptive weight: what is added has a graph."""
    terms = terms_of(layer, x)
    log = read_of(terms)
    return terms["mean"] + log["mean"] / log["size"] * terms["size"]


def normalised(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    terms = terms_of(layer, x)
    log = read_of(terms)
    return sum(terms[name] / log[name] for name in terms)


def averaged(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """A running average of what is trained is added, for the sake of the printed value."""
    terms = terms_of(layer, x)
    LOG.append(terms["size"].item())
    return terms["mean"] + sum(LOG[-3:]) / 7 + 1.0


def only_logged(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    terms = terms_of(layer, x)
    LOG.append(0.7 * terms["size"].item())
    return terms["mean"] + 0.1


def a_part_of_the_sum(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    terms = terms_of(layer, x)
    log = read_of(terms)
    total = terms["mean"] + terms["size"]
    return total + 0.1 * log["size"]


def with_its_own_backward(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """Each part goes backward at once, to save memory; the sum is told."""
    size = layer(x).square().mean()
    size.backward()
    told = size.item()
    return layer(x).mean() + told


def logsumexp(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    scores = layer(x).flatten()
    largest = scores.max().item()
    total = (scores - largest).exp().sum().log()
    return total + largest


def value_of_another(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """A surrogate that is printed as what it stands for."""
    terms = terms_of(layer, x)
    log = read_of(terms)
    surrogate = terms["mean"]
    return surrogate - log["mean"] + log["size"]


def multiplier(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    price = MULTIPLIER.item()
    return layer(x).mean() + price * layer(x).square().mean() + 0.5 * price


def without_a_graph(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        size = layer(x).square().mean().item()
    return layer(x).mean() + 0.5 * size


MULTIPLIER = torch.nn.Parameter(torch.tensor(0.5))
QUIET = [
    weighed, normalised, averaged, only_logged, a_part_of_the_sum, with_its_own_backward, logsumexp, value_of_another,
    multiplier, without_a_graph,
]  # fmt: skip


def logged(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    loss = layer(x).mean()
    LOG.append(loss.item())
    return loss


def measured(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    loss = layer(x).mean()
    return loss


def logged_of_another(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    loss = measured(layer, x)
    LOG.append(loss.item())
    return loss


ALIVE = {
    "a target without a gradient": lambda layer, x: (layer(x) - described(x[:, :2])).square().mean(),
    "a target of what is trained": lambda layer, x: (layer(x) - described(layer(x))).square().mean(),
    "a baseline without a gradient": lambda layer, x: layer(x).mean() - described(layer(x)).mean(),
    "a factor without a gradient": lambda layer, x: layer(x).mean() * described(layer(x)).norm(),
    "a term of other values without a gradient": lambda layer, x: layer(x).mean() + described(x[:, :2]).mean(),
    "one less a logged loss": lambda layer, x: 1 - logged(layer, x),
    "one less a loss that a helper logs of another": lambda layer, x: 1 - logged_of_another(layer, x),
    "a constant beside what is logged": lambda layer, x: logged(layer, x) + 1.0,
    "a penalty": lambda layer, x: layer(x).mean() + 10 * slope(layer, x, keep=True),
    "a penalty of each sample": lambda layer, x: (layer(x)[:, 0] + slope_of_each(layer, x, keep=True)).mean(),
    "a step along a gradient": lambda layer, x: layer(x - 0.1 * slope_of_each(layer, x, keep=False)[:, None]).mean(),
    "a gradient as a target": lambda layer, x: (layer(x)[:, 0] - slope_of_each(layer, x, keep=False)).square().mean(),
    "a term that is detached in so many words": lambda layer, x: layer(x).mean() + layer.weight.norm().detach(),
    "a distance from what was": lambda layer, x: layer(x).mean() + (layer.weight - layer.weight.data * 0.9).norm(),
    "a factor": lambda layer, x: layer(x).mean() * layer.weight.norm().item(),
    "a constant": lambda layer, x: layer(x).mean() + 1.0,
    "a difference with what was": lambda layer, x: (layer(x) - torch.tensor(layer(x).tolist())).mean(),
    "a perturbed input": lambda layer, x: layer(x + 0.1 * slope(layer, x, keep=False)).mean(),
}


@pytest.mark.parametrize("name", DEAD)
def test_a_term_without_a_graph(name: str) -> None:
    operation, loss_of = DEAD[name]
    assert [(one.kind, one.operation) for one in lines(trained(loss_of), fails=False)] == [("dead-term", operation)]


def test_a_term_that_is_computed_with_grad_mode_off() -> None:
    """Of what the layer computed, with what switches grad mode off; targets, baselines and factors are meant so."""
    found = lines(trained(lambda layer, x: layer(x).mean() + 0.5 * described(layer(x)).abs().mean()), fails=False)
    assert [(one.kind, one.function) for one in found] == [("grad-off", "described"), ("dead-term", "described")]


def test_a_term_beside_data_of_many_operations() -> None:
    """What a data set computes of a sample lies on the way of a term too, and is not looked through first."""

    def photo() -> torch.Tensor:
        made = torch.zeros(4, 2)
        for _ in range(300):
            made = made + torch.rand(4, 2)
        return made

    def loss_of(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
        return layer(x).mean() + (described(layer(x)) - described(photo())).abs().mean()

    found = lines(trained(loss_of), fails=False)
    assert [(one.kind, one.function) for one in found] == [("grad-off", "described"), ("dead-term", "described")]


@pytest.mark.parametrize("name", ALIVE)
def test_terms_that_are_as_they_should_be(name: str) -> None:
    assert lines(trained(ALIVE[name]), fails=False) == ()


@pytest.mark.parametrize("loss_of", QUIET, ids=lambda one: one.__name__)
def test_numbers_that_are_no_terms(loss_of: Callable[[torch.nn.Linear, torch.Tensor], torch.Tensor]) -> None:
    assert lines(trained(loss_of), fails=False) == ()


@pytest.mark.parametrize("loss_of", NUMBERS, ids=lambda one: one.__name__)
def test_a_number_that_was_read_before(loss_of: Callable[[torch.nn.Linear, torch.Tensor], torch.Tensor]) -> None:
    """Read for a log, and added further down: the sum is told, and the line that read it."""
    found = lines(trained(loss_of), fails=False)
    assert [one.kind for one in found][:2] == ["added", "dead-term"]
    assert found[0].function == loss_of.__name__


def test_a_term_that_trains_later() -> None:
    """The sum is told to a log after its first part went backward, and then the other part does."""
    layer = torch.nn.Linear(3, 2)

    def train() -> None:
        for _ in range(3):
            terms = terms_of(layer, torch.randn(4, 3))
            size = terms["size"].item()
            (terms["mean"] + size).backward(retain_graph=True)
            terms["size"].backward()

    assert lines(train, fails=False) == ()
