"""A hook that computes with a wider dtype gives back the gradient's own."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, diff_lines, failed, line_of, rewritten, write

WIDER = "hook '{}' has changed the type of value (was torch.FloatTensor got torch.DoubleTensor)"
HALF = "hook '<lambda>' has changed the type of value (was torch.HalfTensor got torch.FloatTensor)"
HEAD = """import numpy as np
import torch
from torch import nn

layer = nn.Linear(4, 4)
keep = torch.from_numpy(np.eye(4))
narrow = torch.ones(4, 4)
"""
LAMBDA = "layer.weight.register_hook(lambda grad: {})\n"
RIGHT = {
    "another size": (LAMBDA.format("grad * keep"), "hook '<lambda>' has changed the size of value"),
    "another device": (
        LAMBDA.format("grad * keep"),
        "hook '<lambda>' has changed the type of value (was torch.cuda.FloatTensor got torch.FloatTensor)",
    ),
    "a device and a dtype": (
        LAMBDA.format("grad * keep"),
        "hook '<lambda>' has changed the type of value (was torch.cuda.FloatTensor got torch.DoubleTensor)",
    ),
    "a sparse gradient": (
        LAMBDA.format("grad * keep"),
        "hook '<lambda>' has changed the type of value (was torch.sparse.FloatTensor got torch.DoubleTensor)",
    ),
    "a number": (LAMBDA.format("grad * keep"), "expected Variable, but hook returned 'float'"),
    "a narrower one": (
        LAMBDA.format("grad.half()"),
        "hook '<lambda>' has changed the type of value (was torch.FloatTensor got torch.HalfTensor)",
    ),
    "integers": (
        LAMBDA.format("grad.sign().long()"),
        "hook '<lambda>' has changed the type of value (was torch.FloatTensor got torch.LongTensor)",
    ),
    "a cast alone": (LAMBDA.format("grad.double()"), WIDER.format("<lambda>")),
    "nothing is returned": ("def look(grad):\n    print(grad * keep)\nlayer.weight.register_hook(look)\n", WIDER.format("look")),
    "a hook of another name": (LAMBDA.format("grad * keep"), WIDER.format("look")),
    "the gradient written over twice": (
        "def look(grad):\n    grad = grad * 2\n    grad = grad * keep\n    return grad\nlayer.weight.register_hook(look)\n",
        WIDER.format("look"),
    ),
    "two hooks of which nothing is known": (
        LAMBDA.format("grad * torch.load('a')") + LAMBDA.format("grad * torch.load('b')[0]"),
        WIDER.format("<lambda>"),
    ),
    "a hook of a module": (
        "layer.register_full_backward_hook(lambda m, gi, go: (gi[0] * keep,))\n", WIDER.format("hook"),
    ),
}  # fmt: skip
FUNCTION = """def only_new(grad):
    if grad.numel() == 0:
        return grad
    {}


layer.weight.register_hook(only_new)
"""
CLASS = """class Rows:
    def __init__(self, rows):
        mask = np.zeros((4, 1))
        mask[rows] = 1.0
        self.mask = torch.tensor(mask)

    def attach(self, table):
        table.weight.register_hook(self.apply)

    def apply(self, grad):
        return torch.mul(grad, self.mask)


Rows([0, 2]).attach(layer)
"""
FACTORY = """def scaled(share):
    def hook(grad):
        return share * grad
    return hook


layer.weight.register_hook(scaled(torch.tensor(np.linspace(0.0, 1.0, 4))))
"""
WRONG = {
    "a lambda": (LAMBDA.format("grad * keep"), "<lambda>", "grad * keep.to(grad.dtype)"),
    "beside one that is right": (
        LAMBDA.format("grad * narrow") + LAMBDA.format("grad * keep"), "<lambda>", "grad * keep.to(grad.dtype)",
    ),
    "an expression": (LAMBDA.format("grad * (1 - keep)"), "<lambda>", "grad * (1 - keep).to(grad.dtype)"),
    "a method": (LAMBDA.format("grad.mul(keep)"), "<lambda>", "grad.mul(keep.to(grad.dtype))"),
    "computed in float64": (
        LAMBDA.format("grad.double() / grad.double().norm()"), "<lambda>",
        "(grad.double() / grad.double().norm()).to(grad.dtype)",
    ),
    "chosen from two": (
        LAMBDA.format("torch.where(keep > 0, grad, keep)"), "<lambda>",
        "torch.where(keep > 0, grad, keep).to(grad.dtype)",
    ),
    "a mask of unknown make": (
        LAMBDA.format("grad * torch.load('mask.pt')"), "<lambda>", "grad * torch.load('mask.pt').to(grad.dtype)",
    ),
    "a function": (FUNCTION.format("return grad * keep"), "only_new", "return grad * keep.to(grad.dtype)"),
    "a name of the result": (
        FUNCTION.format("masked = grad * keep\n    return masked"), "only_new", "masked = grad * keep.to(grad.dtype)",
    ),
    "the gradient's own name": (
        FUNCTION.format("grad = grad * keep\n    return grad"), "only_new", "grad = grad * keep.to(grad.dtype)",
    ),
    "a method of a class": (CLASS, "apply", "return torch.mul(grad, self.mask.to(grad.dtype))"),
    "a factory": (FACTORY, "hook", "return share.to(grad.dtype) * grad"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "message"), RIGHT.values(), ids=RIGHT)
def test_other_hooks_stay(source: str, message: str, tmp_path: pathlib.Path) -> None:
    """What is no wider gradient of one hook is left alone."""
    assert rewritten(tmp_path, "gradient_in_its_dtype", HEAD + source, message=message) == HEAD + source


@pytest.mark.parametrize(("source", "hook", "wanted"), WRONG.values(), ids=WRONG)
def test_what_is_wider_is_cast(source: str, hook: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """The operand, else the result, is brought to the gradient's dtype."""
    after = rewritten(tmp_path, "gradient_in_its_dtype", HEAD + source, message=WIDER.format(hook))
    (changed,) = [line[1:] for line in diff_lines(HEAD + source, after) if line[0] == "+"]
    assert wanted in changed


def test_float32_beside_half_precision(tmp_path: pathlib.Path) -> None:
    """Torch's own float32 is wider than the gradient of a model in half precision."""
    source = HEAD + LAMBDA.format("grad * narrow")
    after = rewritten(tmp_path, "gradient_in_its_dtype", source, message=HALF)
    assert "grad * narrow.to(grad.dtype)" in after


def test_the_line_is_where_float64_is_made(tmp_path: pathlib.Path) -> None:
    """NumPy's array leads, not the product."""
    program = write(tmp_path, {"train.py": HEAD + CLASS})
    proposal = best("gradient_in_its_dtype", program, incident=failed(message=WIDER.format("apply")))
    assert proposal is not None
    assert proposal.culprit.line == line_of(HEAD + CLASS, "np.zeros")
