"""A custom Function whose backward is differentiated again saves what has a graph there."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = "trying to differentiate twice a function that was marked with @once_differentiable"
SOURCE = """import torch
from torch.autograd.function import once_differentiable


class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {forward}

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        {backward}


x = torch.linspace(-1, 1, 5, dtype=torch.float64).requires_grad_()
(slope,) = torch.autograd.grad(Own.apply(x).sum(), x, create_graph=True)
slope.square().sum().backward()
"""
SWISH = "gate = torch.sigmoid(x)\n        out = x * gate\n        ctx.save_for_backward({saved})\n        return out"
RESAVED = {
    "between": (
        SWISH.format(saved="gate, out"),
        "gate, out = ctx.saved_tensors\n        return grad * (gate + out * (1 - gate))",
        ["ctx.save_for_backward(x, out)", "x, out = ctx.saved_tensors"],
    ),
    "under another name": (
        SWISH.format(saved="x, gate"),
        "x, g = ctx.saved_tensors\n        return grad * (g + x * g * (1 - g))",
        ["ctx.save_for_backward(x)", "x, = ctx.saved_tensors", "g = torch.sigmoid(x)"],
    ),
    "inputs alone": (
        "ctx.save_for_backward(x)\n        return x.square()",
        "return 2 * grad * ctx.saved_tensors[0]",
        [],
    ),
    "the output": (
        "out = x.exp()\n        ctx.save_for_backward(out)\n        return out",
        "out, = ctx.saved_tensors\n        return grad * out",
        [],
    ),
}
LEFT = {
    "an attribute": (
        "gate = torch.sigmoid(x)\n        ctx.gate = gate\n        ctx.save_for_backward(x)\n        return x * gate",
        "x, = ctx.saved_tensors\n        return grad * (ctx.gate + x * ctx.gate * (1 - ctx.gate))",
    ),
    "written since": (
        "gate = torch.sigmoid(x)\n        gate.mul_(2)\n        ctx.save_for_backward(gate)\n        return x * gate",
        "gate, = ctx.saved_tensors\n        return grad * gate",
    ),
    "of another": (
        "a = x * 2\n        gate = torch.sigmoid(a)\n        ctx.save_for_backward(gate)\n        return gate * 1",
        "gate, = ctx.saved_tensors\n        return 2 * grad * gate * (1 - gate)",
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize(("forward", "backward", "lines"), RESAVED.values(), ids=RESAVED)
def test_what_is_computed_between_is_computed_anew(
    forward: str, backward: str, lines: list[str], tmp_path: pathlib.Path
) -> None:
    """The second derivative is right behind the edit, by finite differences."""
    torch = pytest.importorskip("torch")
    source = SOURCE.format(forward=forward, backward=backward)
    after = rewritten(tmp_path, "differentiate_twice", source, "slope.square", message=MESSAGE)
    assert changed_lines(source, after) == lines
    assert "once_differentiable" not in after
    space: dict[str, object] = {}
    exec(compile(after, "after", "exec"), space)  # noqa: S102
    x = torch.linspace(-1, 1, 5, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradgradcheck(space["Own"].apply, (x,))


@pytest.mark.parametrize(("forward", "backward"), LEFT.values(), ids=LEFT)
def test_what_cannot_be_computed_anew_keeps_its_guard(forward: str, backward: str, tmp_path: pathlib.Path) -> None:
    """Without it the second derivative would be wrong, and nothing would say so."""
    source = SOURCE.format(forward=forward, backward=backward)
    assert rewritten(tmp_path, "differentiate_twice", source, "slope.square", message=MESSAGE) == source
