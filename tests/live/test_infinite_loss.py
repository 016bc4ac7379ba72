"""An infinity is told where it is made, also where a division hid it, and where the program gave up on its loss."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.live.tracing import lines  # noqa: E402


def contrast(scores: torch.Tensor) -> torch.Tensor:
    """The logarithm of a quotient of exponentials, whose sum is out of range before they are."""
    weight = torch.exp(scores)
    return -torch.log(weight.diagonal() / weight.sum(1)).mean()


def trained(last: float, loss_of: object = contrast) -> object:
    """Two steps, and a third that the program leaves before its backward where the loss is not finite."""
    net = torch.nn.Linear(4, 4, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.eye(4))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)

    def train() -> None:
        for size in (1.0, 1.0, last):
            loss = loss_of(net(size * torch.ones(4, 4)))
            if not torch.isfinite(loss):
                return
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return train


def test_an_infinity_that_was_divided_by() -> None:
    """What is left of it is 0, whose logarithm is innocent: what was summed is out of range."""
    (found,) = (one for one in lines(trained(88.0), fails=False) if one.kind == "not-finite")
    assert found.operation in ("exp", "sum")


def test_an_exponential_out_of_range() -> None:
    """A loss of infinity at which the program stops: nothing was sent backward."""
    (found,) = (
        one for one in lines(trained(99.0, lambda h: torch.exp(h).mean()), fails=False) if one.kind == "not-finite"
    )
    assert found.operation == "exp"


def test_a_mask_is_no_loss() -> None:
    """The last value of a graph is finite, whatever infinity stood before it."""
    masked = torch.eye(4, dtype=torch.bool)

    def loss_of(h: torch.Tensor) -> torch.Tensor:
        return h.masked_fill(masked, -torch.inf).softmax(1).square().mean()

    assert lines(trained(1.0, loss_of), fails=False) == ()
