"""A loss that ends infinite, without a NaN: the operation that made the infinity of finite values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

import gradfix  # noqa: E402

Loss = Callable[["torch.Tensor"], "torch.Tensor"]
INFINITE: dict[str, tuple[Loss, str]] = {
    "an exponential": (lambda out: out.mul(1e3).exp().sum().log(), "exp"),
    "a logarithm": (lambda out: -(out * 0).log().mean(), "log"),
    "a quotient": (lambda out: (1 / (out - out.detach())).abs().mean(), "__rdiv__"),
    "beside a mask": (
        lambda out: out.masked_fill(out < 0, -torch.inf).softmax(0).sum() + out.mul(1e3).exp().mean(),
        "exp",
    ),
}


def lines(loss: Loss, message: str) -> list[tuple[str, str]]:
    """Kind and operation of what a trace of a step that refuses its loss shows."""
    seen = None
    with pytest.raises(ValueError, match=message[:4]), gradfix.trace() as seen:
        value = loss(torch.ones(3, requires_grad=True))
        if not torch.isfinite(value) or "shape" in message:
            raise ValueError(message)
    assert seen is not None
    return [(one.kind, one.operation) for one in seen.lines]


@pytest.mark.parametrize(("loss", "operation"), INFINITE.values(), ids=INFINITE)
def test_the_source_of_an_infinite_loss_is_told(loss: Loss, operation: str) -> None:
    """Not what hands it on, and not the infinity of a mask."""
    assert lines(loss, "loss is inf") == [("not-finite", operation)]
    assert lines(loss, "loss is not finite") == [("not-finite", operation)]


def test_another_failure_says_nothing_of_infinities() -> None:
    """A logarithm of 0 may be a mask: only a failure that speaks of it makes it one."""
    assert lines(lambda out: (out * torch.tensor([0.0, 1.0, 1.0])).log().softmax(0).sum(), "a shape is wrong") == []


def test_a_step_with_an_infinite_loss() -> None:
    """The optimizer's step is where a run that goes on is looked at."""
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with gradfix.trace() as seen:
        loss = weight.mul(1e3).exp().mean() + weight.sum()
        loss.backward()
        optimizer.step()
    assert [(one.kind, one.operation) for one in seen.lines] == [("not-finite", "exp")]


MASKED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a product": lambda logp: (logp.exp() * logp).sum(),
    "a product of a matrix": lambda logp: logp.exp()[None] @ logp,
}


@pytest.mark.parametrize("product", MASKED.values(), ids=MASKED)
def test_nothing_times_the_infinity_of_a_mask(product: Loss) -> None:
    """The product is told, and the line that put the infinity there: the entropy of what may be chosen."""
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with gradfix.trace() as seen:
        scores = weight.mul(2).masked_fill(torch.tensor([True, False, False]), -torch.inf)
        product(scores.log_softmax(0)).sum().backward()
        optimizer.step()
    made, mask = seen.lines
    assert (made.kind, made.operation in ("mul", "matmul", "__matmul__")) == ("not-finite", True)
    assert (mask.kind, mask.operation) == ("not-finite", "masked_fill")


def test_the_infinite_loss_of_a_gradient_that_is_nan() -> None:
    """`logsumexp` of infinities has a NaN gradient; what left the log domain before it made them."""
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with gradfix.trace() as seen:
        paths = weight.mul(1e3).exp().log()
        torch.logsumexp(paths, 0).backward()
        optimizer.step()
    assert [(one.kind, one.operation) for one in seen.lines] == [("not-finite", "exp")]


def test_an_infinity_that_no_loss_reads() -> None:
    """A finite loss beside it: what the backward multiplies by 0 stays the backward's."""
    weight = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with gradfix.trace() as seen:
        torch.where(weight > 1, weight.log(), weight).sum().backward()
        optimizer.step()
    assert ["backward" in one.says for one in seen.lines] == [True]
