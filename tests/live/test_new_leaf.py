"""The tracer names a line that makes parameters of what a graph computes, between two steps, where it starves what computes them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tests.live.tracing import lines, shown  # noqa: E402

Weights = Callable[[torch.Tensor], list[torch.Tensor]]


def program(weights: Weights, first: nn.Module | None = None) -> Callable[[], None]:
    """A network makes weight and bias of a layer for each batch; `head` trains behind it, and `first` is the optimizer's too."""
    maker, head = nn.Linear(3, 8), nn.Linear(2, 1)
    optimizer = torch.optim.SGD(nn.ModuleList([maker, head, *([first] if first else [])]).parameters(), lr=0.1)

    def train() -> None:
        for _ in range(4):
            weight, bias = weights(maker(torch.randn(3)))
            loss = head(torch.randn(4, 3) @ weight.view(2, 3).T + bias).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return train


def renewed(made: torch.Tensor) -> list[torch.Tensor]:
    return [nn.Parameter(one) for one in made.split([6, 2])]


def on_two_lines(made: torch.Tensor) -> list[torch.Tensor]:
    weight = nn.Parameter(made[:6])
    bias = torch.nn.parameter.Parameter(data=made[6:])
    return [weight, bias]


def listed(made: torch.Tensor) -> list[torch.Tensor]:
    return list(nn.ParameterList(made.split([6, 2])))


def as_they_are(made: torch.Tensor) -> list[torch.Tensor]:
    return list(made.split([6, 2]))


def read_beside(made: torch.Tensor) -> list[torch.Tensor]:
    """A copy that is only looked at cuts nothing off."""
    nn.Parameter(made).square().mean().backward()
    return list(made.split([6, 2]))


def fitted(made: torch.Tensor) -> list[torch.Tensor]:
    """Fast weights begin as what a network makes, and an optimizer of their own steps them."""
    fast = [nn.Parameter(one) for one in made.split([6, 2])]
    inner = torch.optim.SGD(fast, lr=0.1)
    sum(one.square().sum() for one in fast).backward()
    inner.step()
    return fast


def handed_back(made: torch.Tensor) -> list[torch.Tensor]:
    """What computes the values is given the gradient of the leaf by hand."""
    leaf = nn.Parameter(made)
    leaf.register_hook(lambda gradient: made.backward(gradient, retain_graph=True))
    return list(leaf.split([6, 2]))


def without_grad(made: torch.Tensor) -> list[torch.Tensor]:
    """Weights are cut on purpose where grad mode is off."""
    with torch.no_grad():
        leaf = nn.Parameter(made)
    return list((leaf + 0 * made).split([6, 2]))


def test_parameters_of_what_a_network_makes() -> None:
    """The line is told once, for all that it starves; of two lines neither is a guess, for both have to go."""
    found = lines(program(renewed), fails=False)
    assert shown(found) in [[("starving-cut", "Parameter", "renewed")], [("starving-cut", "Parameter", "<listcomp>")]]
    assert "`Parameter` keeps 2 parameters of the optimizer" in found[0].says
    two = lines(program(on_two_lines), fails=False)
    assert [(one.kind, one.function, one.is_guess) for one in two] == [("starving-cut", "on_two_lines", False)] * 2
    assert shown(lines(program(listed), fails=False)) == [("starving-cut", "Parameter", "listed")]


@pytest.mark.parametrize("weights", [as_they_are, read_beside, fitted, handed_back, without_grad])
def test_what_starves_nothing_or_is_meant(weights: Weights) -> None:
    """Nothing is told of the line."""
    assert all(one.operation != "Parameter" for one in lines(program(weights), fails=False))


def test_copies_that_are_made_once() -> None:
    """Weights that were made of others before the first step are the model; the others are left to the optimizer by mistake."""
    base = nn.Linear(3, 8)

    def main() -> None:
        copied = nn.Linear(3, 8)
        copied.weight = nn.Parameter(base.weight)
        copied.bias = nn.Parameter(base.bias * 1.0)
        program(lambda made: list((made + copied(torch.ones(3))).split([6, 2])), base)()

    assert lines(main, fails=False) == ()


def test_first_order_meta_learning() -> None:
    """Fast weights are parameters of the model's, stepped by an optimizer of their own; the model gets their gradients by hand."""
    model = nn.Linear(3, 1)
    outer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train() -> None:
        for _ in range(4):
            fast = [nn.Parameter(one.clone()) for one in model.parameters()]
            inner = torch.optim.SGD(fast, lr=0.1)
            for _ in range(2):
                inner.zero_grad()
                nn.functional.linear(torch.randn(4, 3), *fast).square().mean().backward()
                inner.step()
            for one, other in zip(model.parameters(), fast, strict=True):
                one.grad = one.detach() - other.detach()
            outer.step()

    assert lines(train, fails=False) == ()


def test_the_constructor_is_put_back() -> None:
    """Behind the trace a parameter is made as ever."""
    before = vars(nn.Parameter)["__new__"]
    lines(program(renewed), fails=False)
    assert vars(nn.Parameter)["__new__"] is before
