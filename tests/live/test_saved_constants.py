"""What a custom Function computes and saves is a constant to a second derivative, without an error."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torch.autograd.function import once_differentiable  # noqa: E402

from explainer.fix.splice import splice  # noqa: E402
from explainer.model.trace import SAVED_CONSTANT, TracedLine  # noqa: E402
from tests import forked  # noqa: E402
from tests.fix.rewriting import best, changed_lines, failed, line_of, write  # noqa: E402
from tests.live.tracing import lines  # noqa: E402
from tests.verification.programs import gradfix  # noqa: E402


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        gate = torch.sigmoid(x)
        ctx.save_for_backward(x, gate)
        return x * gate

    @staticmethod
    def backward(ctx, grad):
        x, gate = ctx.saved_tensors
        return grad * gate * (1 + x * (1 - gate))


class Deviation(torch.autograd.Function):
    """Of what it saves only the last operation takes what requires no grad."""

    @staticmethod
    def forward(ctx, x):
        scale = x.square().mean().sqrt()
        ctx.save_for_backward(x, scale)
        return x / scale

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        return grad / scale - x * (grad * x).mean() / scale**3


class Exponential(torch.autograd.Function):
    """Saves its output, to which autograd knows the way."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y


class Half(torch.autograd.Function):
    """Saves a mask, which has no slope."""

    @staticmethod
    def forward(ctx, x):
        kept = (x > 0).float()
        ctx.save_for_backward(x, kept)
        return x * x * kept

    @staticmethod
    def backward(ctx, grad):
        x, kept = ctx.saved_tensors
        return 2 * grad * x * kept


class Once(Swish):
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return Swish.backward(ctx, grad)


def penalty(function: type[torch.autograd.Function]) -> None:
    """A loss of the slope: the backward of the function is derived again."""
    weight = torch.linspace(-1, 1, 4, requires_grad=True)
    x = torch.ones(4, requires_grad=True)
    (slope,) = torch.autograd.grad(function.apply(weight * x).sum(), x, create_graph=True)
    slope.square().sum().backward()


def never_again(function: type[torch.autograd.Function]) -> None:
    """A graph of the backward is recorded, and no other one goes through it."""
    weight = torch.ones(4, requires_grad=True)
    (slope,) = torch.autograd.grad(function.apply(weight).sum(), weight, create_graph=True)
    assert slope.requires_grad


@pytest.mark.parametrize("function", [Swish, Deviation])
def test_what_is_derived_again_is_seen(function: type[torch.autograd.Function]) -> None:
    """By the Function's name, at its forward."""
    (found,) = lines(lambda: penalty(function), fails=False)
    assert (found.kind, found.operation, found.function) == (SAVED_CONSTANT, function.__name__, "forward")


@pytest.mark.parametrize("function", [Exponential, Half])
def test_what_has_no_slope_of_its_own(function: type[torch.autograd.Function]) -> None:
    """An output and a mask are what they are to the second derivative too."""
    assert lines(lambda: penalty(function), fails=False) == ()


def test_what_is_derived_once() -> None:
    """The first derivative is right; and what allows no other one has said so."""
    assert lines(lambda: never_again(Swish), fails=False) == ()
    assert lines(lambda: penalty(Once), fails=False) == ()


def torchs() -> tuple[object, ...]:
    module = torch.autograd.function
    return module.Function.apply.__func__, module.BackwardCFunction.apply, module.FunctionCtx.save_for_backward


def test_nothing_is_left_behind() -> None:
    """Behind the trace the methods are torch's own."""
    before = torchs()
    lines(lambda: penalty(Swish), fails=False)
    assert torchs() == before


def test_what_is_saved_is_not_read_back() -> None:
    """A hook that unpacks what is saved, as that of a checkpoint, runs in the backward alone."""
    unpacked: list[int] = []
    weight = torch.ones(3, requires_grad=True)

    def step() -> None:
        with torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: unpacked.append(1) or one):
            out = Swish.apply(weight).sum()
        assert not unpacked
        out.backward()

    assert lines(step, fails=False) == ()
    assert unpacked


SOURCE = """import torch

class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        gate = torch.sigmoid(x)
        ctx.save_for_backward(x, gate)
        return x * gate

    @staticmethod
    def backward(ctx, grad):
        x, gate = ctx.saved_tensors
        return grad * gate * (1 + x * (1 - gate))
"""


def test_the_inputs_are_saved_alone(tmp_path: pathlib.Path) -> None:
    """And the rest is computed of them in the backward."""
    line = TracedLine(
        kind=SAVED_CONSTANT, operation="Swish", file=str(tmp_path / "train.py"), line=line_of(SOURCE, "@static")
    )
    program = write(tmp_path, {"train.py": SOURCE})
    proposal = best("save_inputs_alone", program, incident=replace(failed(), traced=(line,)))
    assert proposal is not None
    assert (proposal.culprit.file, proposal.culprit.line) == (str(tmp_path / "train.py"), line_of(SOURCE, "save_for"))
    assert changed_lines(SOURCE, splice(SOURCE, proposal.edits)) == [
        "ctx.save_for_backward(x)", "x, = ctx.saved_tensors",
    ]  # fmt: skip
    assert (splice(SOURCE, proposal.edits) or "").count(
        "gate = torch.sigmoid(x)"
    ) == 2  # in the forward, and of it in the backward


PROGRAM = """import torch
from torch import nn


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        gate = torch.sigmoid(x)
        ctx.save_for_backward(x, gate)
        return x * gate

    @staticmethod
    def backward(ctx, grad):
        x, gate = ctx.saved_tensors
        return grad * gate * (1 + x * (1 - gate))


torch.manual_seed(0)
first, last = nn.Linear(3, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.05)
for x in torch.rand(24, 3).split(8):
    x.requires_grad_()
    value = last(Gate.apply(first(x)))
    (slope,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    loss = (value - x.sum(1, keepdim=True)).square().mean() + (slope - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_it_is_suspect_and_mended(tmp_path: pathlib.Path) -> None:
    """A program that ends well is told of it, and trains with the whole second derivative behind the edit."""
    (tmp_path / "train.py").write_text(PROGRAM)
    done = gradfix(tmp_path, "run", "--fix", "--no-probe", "--", forked.python(), "train.py")
    assert done.returncode == 0, done.stderr
    assert "backward/custom-function-contract" in done.stdout + done.stderr
    assert "        gate = torch.sigmoid(x)\n        return grad * gate" in (tmp_path / "train.py").read_text()
