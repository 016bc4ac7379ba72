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


@pytest.mark.parametrize("name", ALIVE)
def test_terms_that_are_as_they_should_be(name: str) -> None:
    assert lines(trained(ALIVE[name]), fails=False) == ()
