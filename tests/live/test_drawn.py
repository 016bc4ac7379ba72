"""Samples that a model draws without their gradient, and differences of what was cut off with a column."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")
from torch.distributions import Categorical, Independent, Normal  # noqa: E402

from tests.live.tracing import lines, shown  # noqa: E402

pytestmark = pytest.mark.torch


def trained(loss_of: Callable[[torch.nn.Module, torch.nn.Module], torch.Tensor]) -> Callable[[], None]:
    """Three steps of two layers that one optimizer owns."""
    first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)

    def train() -> None:
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(first, second).backward()
            optimizer.step()

    return train


def latent(*, way: str) -> Callable[[torch.nn.Module, torch.nn.Module], torch.Tensor]:
    def loss_of(encoder: torch.nn.Module, decoder: torch.nn.Module) -> torch.Tensor:
        q = Normal(encoder(torch.randn(8, 4)), 1.0)
        z = getattr(q, way)()
        return decoder(z).square().mean() + 0.1 * q.loc.square().mean()

    return loss_of


def test_a_latent_that_is_sampled_without_its_gradient() -> None:
    """The divergence trains the encoder all the same, so that nothing starves: the draw is named."""
    found = lines(trained(latent(way="sample")), fails=False)
    assert shown(found) == [("drawn", "normal", "loss_of")]
    assert lines(trained(latent(way="rsample")), fails=False) == ()


def policy(actor: torch.nn.Module, critic: torch.nn.Module) -> torch.Tensor:
    """The score function: the sample is data, and its probability is what trains."""
    state = torch.randn(8, 4)
    distribution = Independent(Normal(actor(state), 1.0), 1)
    action = distribution.sample()
    value = critic(state + action).squeeze(-1)
    return (value - 1.0).square().mean() - (distribution.log_prob(action) * value.detach()).mean()


def chosen(actor: torch.nn.Module, critic: torch.nn.Module) -> torch.Tensor:
    """A category has no such gradient."""
    state = torch.randn(8, 4)
    action = Categorical(logits=actor(state)).sample()
    return critic(state * action[:, None]).square().mean() + actor(state).square().mean()


def logged(actor: torch.nn.Module, critic: torch.nn.Module) -> torch.Tensor:
    """A sample for a picture meets no graph."""
    mean = actor(torch.randn(8, 4))
    float(Normal(mean, 1.0).sample().mean())
    return critic(mean).square().mean()


def prior(actor: torch.nn.Module, critic: torch.nn.Module) -> torch.Tensor:
    """Nothing that trains is in a prior."""
    noise = Normal(torch.zeros(8, 4), 1.0).sample()
    return critic(actor(noise)).square().mean()


@pytest.mark.parametrize("loss_of", [policy, chosen, logged, prior])
def test_a_sample_that_is_meant_as_data(loss_of: Callable[..., torch.Tensor]) -> None:
    """No line."""
    assert lines(trained(loss_of), fails=False) == ()


def advantage(column: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    def loss_of(actor: torch.nn.Module, critic: torch.nn.Module) -> torch.Tensor:
        state, returns = torch.randn(8, 4), torch.randn(8)
        values = critic(state)
        weight = returns - column(values)
        log_prob = Categorical(logits=actor(state)).log_prob(torch.zeros(8, dtype=torch.long))
        return -(log_prob * weight).mean() + (values.squeeze(-1) - returns).square().mean()

    return loss_of


def test_an_advantage_of_all_pairs() -> None:
    """Neither side requires grad, the column is the critic's output, and the policy trains on the pairs."""
    found = lines(trained(advantage(lambda values: values.detach())), fails=False)
    assert [(one.kind, one.operation) for one in found] in ([("crossed", "sub")], [("crossed", "__sub__")])
    assert lines(trained(advantage(lambda values: values.detach().squeeze(-1))), fails=False) == ()


def test_all_pairs_that_are_meant() -> None:
    """A column that an index makes is written on purpose; a difference that meets no graph is for the log."""

    def ranked(actor: torch.nn.Module, critic: torch.nn.Module) -> torch.Tensor:
        values = critic(actor(torch.randn(8, 4))).squeeze(-1)
        gaps = values.detach() - values.detach()[:, None]
        return (values * gaps.mean(0)).mean()

    def shown_only(actor: torch.nn.Module, critic: torch.nn.Module) -> torch.Tensor:
        values = critic(actor(torch.randn(8, 4)))
        float((torch.randn(8) - values.detach()).abs().mean())
        return values.square().mean()

    assert lines(trained(ranked), fails=False) == ()
    assert lines(trained(shown_only), fails=False) == ()


def test_a_parameter_that_was_loaded_is_no_way() -> None:
    """What a loader copied into a parameter from another one is its value: a loss without a graph has no cut there."""

    def step() -> None:
        source, net = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1).requires_grad_(False)
        with torch.no_grad():
            net.weight.copy_(source.weight.detach())
        net(torch.ones(2, 3)).sum().backward()

    assert lines(step) == ()


def test_a_nested_list_that_starves_a_layer() -> None:
    """`torch.tensor` copies the values of tensors in lists of lists."""

    def nested(angle: torch.nn.Module, head: torch.nn.Module) -> torch.Tensor:
        x = torch.randn(8, 4)
        rows = torch.tensor([[one, two] for one, two in angle(x)[:, :2]])
        return head(x * rows.sum(1, keepdim=True)).square().mean()

    found = lines(trained(nested), fails=False)
    assert [(one.kind, one.operation) for one in found] == [("starving-cut", "tensor")]


WEIGHT = torch.rand(8)
Loss = Callable[[torch.nn.Module, torch.nn.Module], torch.Tensor]


def weighted(actor: torch.nn.Module, critic: torch.nn.Module) -> torch.Tensor:
    """A weight for each sample against a column of errors."""
    return (WEIGHT * (critic(actor(torch.randn(8, 4))) - 1.0) ** 2).mean()


def bootstrapped(actor: torch.nn.Module, critic: torch.nn.Module) -> torch.Tensor:
    """A target that holds a row of flags against a column of values that were cut off."""
    with torch.no_grad():
        target = torch.ones(8, 1) + 0.9 * WEIGHT * critic(actor(torch.randn(8, 4)))
    return (critic(actor(torch.randn(8, 4))) - target).pow(2).mean()


@pytest.mark.parametrize(("loss", "beside"), [(weighted, ""), (bootstrapped, " that meets a column")])
def test_a_product_of_all_pairs(loss: Loss, beside: str) -> None:
    """The product is named, with the form of what it meets, where its average is the loss."""
    (found,) = lines(trained(loss), fails=False)
    assert (found.kind, found.operation) == ("crossed", "mul")
    assert found.says.endswith(f"a loss of all pairs{beside}")


def features(actor: torch.nn.Module, critic: torch.nn.Module) -> torch.Tensor:
    """As many frequencies as samples, by chance."""
    return actor(torch.sin(critic(torch.randn(4, 4)) * torch.arange(4.0))).mean()


def outer(actor: torch.nn.Module, critic: torch.nn.Module) -> torch.Tensor:
    """A column that an index makes."""
    return (critic(actor(torch.randn(8, 4))).squeeze(-1)[:, None] * WEIGHT).mean()


def kernel(actor: torch.nn.Module, critic: torch.nn.Module) -> torch.Tensor:  # noqa: ARG001
    """Distances of all pairs from sums of squares."""
    one, other = actor(torch.randn(8, 4)), torch.randn(8, 4)
    squares = one.pow(2).sum(1, keepdim=True) + other.pow(2).sum(1)
    return torch.exp(-(squares - 2 * one @ other.t())).mean()


@pytest.mark.parametrize("loss", [features, outer, kernel])
def test_products_of_all_pairs_that_are_meant(loss: Loss) -> None:
    """What goes through a layer, what an index made, and sums are not told."""
    assert lines(trained(loss), fails=False) == ()


def test_the_indices_of_the_best() -> None:
    """`topk` gives values with a graph and indices without: a loss of what the indices look up is cut there."""
    travel, score = torch.rand(6, 6), torch.nn.Linear(3, 6)

    def step() -> None:
        sites = score(torch.randn(4, 3)).topk(2, dim=1).indices
        travel[sites].amin(dim=1).mean().backward()

    found = [one for one in lines(step) if one.kind == "cut"]
    assert [(one.operation, one.function) for one in found] == [("topk", "step")]


def test_a_value_of_the_best_is_no_cut() -> None:
    """The values of `topk` go on with their graph, whatever is looked up by its indices beside them."""

    def chosen(actor: torch.nn.Module, critic: torch.nn.Module) -> torch.Tensor:
        best = actor(torch.randn(8, 4)).topk(2, dim=1)
        return (best.values * WEIGHT[best.indices]).mean() + critic(torch.randn(8, 4)).mean()

    assert lines(trained(chosen), fails=False) == ()


def test_as_many_quantiles_as_samples_by_chance() -> None:
    """A batch of another size shows that the row holds no samples."""
    levels = torch.linspace(0.1, 0.9, 8)
    sizes = iter((8, 5, 8))

    def pinball(actor: torch.nn.Module, critic: torch.nn.Module) -> torch.Tensor:
        error = 1.0 - critic(actor(torch.randn(next(sizes), 4)))
        return torch.maximum(levels * error, (levels - 1) * error).mean()

    assert lines(trained(pinball), fails=False) == ()
