"""Running statistics that a batch norm moves in training mode, though a backward of its eval mode still needs them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

import gradfix  # noqa: E402
from tests.live.tracing import lines, shown  # noqa: E402


def two_forwards(first: bool, second: bool, *, at_once: bool = True) -> Callable[[], None]:  # noqa: FBT001 - the modes
    """A program whose loss goes through a network twice, each time in a mode."""
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def train() -> None:
        for _ in range(3):
            optimizer.zero_grad()
            near = net.train(first)(torch.randn(8, 3)).square().mean()
            if not at_once:
                near.backward()
            far = net.train(second)(torch.randn(8, 3)).square().mean()
            (near + far if at_once else far).backward()
            optimizer.step()

    return train


def test_statistics_that_move_before_the_backward() -> None:
    found = lines(two_forwards(first=False, second=True), fails=False)
    assert shown(found)[:1] == [("hidden-write", "batch_norm", "train")]


def test_the_lines_are_those_that_call_the_network() -> None:
    """The pass that moved the statistics and the one that used them go through the same line of the network."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(3)
            self.out = torch.nn.Linear(3, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.out(self.norm(x))

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def used() -> torch.Tensor:
        return net.eval()(torch.randn(8, 3)).mean()

    def moved() -> torch.Tensor:
        return net.train()(torch.randn(8, 3)).square().mean()

    def train() -> None:
        for _ in range(3):
            optimizer.zero_grad()
            (used() + moved()).backward()
            optimizer.step()

    with gradfix.trace() as seen:
        train()
    assert [(one.kind, one.function) for one in seen.lines] == [("hidden-write", "moved"), ("read", "used")]


@pytest.mark.parametrize(
    ("first", "second", "at_once"),
    [(True, True, True), (False, False, True), (True, False, True), (False, True, False)],
    ids=["both train", "both evaluate", "evaluates last", "backward in between"],
)
def test_nothing_is_wrong(*, first: bool, second: bool, at_once: bool) -> None:
    """In training mode gradients are those of the batch's own statistics."""
    assert lines(two_forwards(first, second, at_once=at_once), fails=False) == ()


def test_torch_does_not_notice() -> None:
    """The gradient is another one than before the statistics moved, and nothing raises."""
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)).double()
    x, other = torch.randn(8, 3).double(), 3 + 2 * torch.randn(8, 3).double()
    wanted = torch.autograd.grad(net.eval()(x).square().mean(), net[0].weight)[0]
    loss = net(x).square().mean()
    net.train()(other)
    (got,) = torch.autograd.grad(loss, net[0].weight)
    assert not torch.allclose(got, wanted, rtol=1e-3)
