"""A parameter whose value is read as a number, and used as one, never gets a gradient: the line that reads it is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tests.live.tracing import lines  # noqa: E402


class Scaled(nn.Module):
    def __init__(self, start: float) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.tensor(start))
        self.body = nn.Linear(3, 1)

    @property
    def scale(self) -> float:
        return self.start.exp().item()

    def from_property(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x) * self.scale

    def by_a_name(self, x: torch.Tensor) -> torch.Tensor:
        scale = self.start.exp().item()
        return x.mean() - scale * self.body(x)

    def as_a_tensor(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x) * self.start.exp()

    def logged(self, x: torch.Tensor) -> torch.Tensor:
        self.last = f"{self.scale:.3f}"
        return self.body(x) * 1.0


def step(start: float, forward: Callable[[Scaled, torch.Tensor], torch.Tensor]) -> None:
    torch.manual_seed(0)
    net = Scaled(start)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        forward(net, torch.randn(8, 3)).square().mean().backward()
        optimizer.step()


def told(start: float, forward: Callable[[Scaled, torch.Tensor], torch.Tensor]) -> list[tuple[str, str | None]]:
    return [(one.operation, one.function) for one in lines(lambda: step(start, forward), fails=False)]


@pytest.mark.parametrize(
    ("start", "forward", "function"),
    [
        (0.3, Scaled.from_property, "scale"),
        (0.0, Scaled.from_property, "scale"),
        (0.3, Scaled.by_a_name, "by_a_name"),
    ],
    ids=["a property", "a round number of a property", "a name"],
)
def test_the_line_that_reads(start: float, forward: Callable, function: str) -> None:
    """Its value goes into what is trained."""
    assert told(start, forward) == [("item", function)]


@pytest.mark.parametrize(
    ("start", "forward"),
    [(0.3, Scaled.as_a_tensor), (0.0, Scaled.logged), (0.3, Scaled.logged)],
    ids=["a tensor", "a round number that is logged beside one that is written", "a number that is logged"],
)
def test_others(start: float, forward: Callable) -> None:
    """What trains, and what is only logged: the program writes a 1.0 of its own."""
    assert told(start, forward) == []
