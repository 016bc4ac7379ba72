"""The operation whose backward made the first bad gradient, in a graph that is differentiated twice: forces, penalties."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.live.tracing import lines  # noqa: E402


def distances(x: torch.Tensor) -> torch.Tensor:
    return (x[:, None] - x[None]).pow(2).sum(-1).sqrt()  # of each to itself too


def softened(x: torch.Tensor) -> torch.Tensor:
    return (x[:, None] - x[None]).pow(2).sum(-1).add(1e-12).sqrt()


def forces(between: Callable, x: torch.Tensor, net: torch.nn.Module) -> torch.Tensor:
    energy = (net(between(x).unsqueeze(-1)).squeeze(-1) * (1 - torch.eye(len(x)))).sum()
    return torch.autograd.grad(energy, x, create_graph=True)[0]


def step(between: Callable, *, is_penalty: bool) -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.SiLU(), torch.nn.Linear(4, 1))
    x = torch.randn(5, 3, requires_grad=True)
    found = forces(between, x, net)
    target = torch.zeros_like(found)
    loss = net(x[:, :1]).mean() + (found.norm() if is_penalty else torch.nn.functional.mse_loss(found, target))
    loss.backward()


@pytest.mark.parametrize("is_penalty", [False, True], ids=["forces", "a penalty"])
def test_the_backward_that_was_first(is_penalty: bool) -> None:
    """In the outer backward every gradient is bad, whatever made it."""
    found = [
        one for one in lines(lambda: step(distances, is_penalty=is_penalty), fails=False) if one.kind == "not-finite"
    ]
    assert [(one.operation, one.function) for one in found] == [("sqrt", "distances")]


def test_nothing_where_the_root_stays_away_from_zero() -> None:
    """The same graph, differentiated twice."""
    assert lines(lambda: step(softened, is_penalty=False), fails=False) == ()
