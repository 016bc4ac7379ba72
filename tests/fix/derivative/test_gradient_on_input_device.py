"""A gradient that was computed in NumPy goes back to the device of its tensor."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.mending import run
from tests.fix.rewriting import changed_lines, rewritten

SAID = "Function SkewBackward returned an invalid gradient at index 0 - expected device cuda:0 but got cpu"
FIELDS = {"node": "SkewBackward", "index": "0", "expected_device": "cuda:0", "got_device": "cpu"}
HEAD = """import numpy as np
import torch
class Skew(torch.autograd.Function):
    @staticmethod
"""
CALL = """x = torch.linspace(-1, 2, 6, requires_grad=True)
Skew.apply(x, 3.0).sum().backward()
out = x.grad
"""
BACK = {
    "beside the incoming gradient": (
        """    def forward(ctx, x, power):
        ctx.rows, ctx.power = x.detach().cpu().numpy(), power
        return torch.from_numpy(np.abs(ctx.rows) ** power).to(x)
    @staticmethod
    def backward(ctx, grad):
        slope = ctx.power * np.abs(ctx.rows) ** (ctx.power - 1) * np.sign(ctx.rows)
        return torch.from_numpy(slope) * grad.cpu(), None
""",
        ["return (torch.from_numpy(slope) * grad.cpu()).to(grad.device), None"],
    ),
    "of a saved tensor": (
        """    def forward(ctx, x, power):
        ctx.save_for_backward(x)
        ctx.power = power
        return torch.from_numpy(np.abs(x.detach().cpu().numpy()) ** power)
    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        rows = x.cpu().numpy()
        slope = ctx.power * np.abs(rows) ** (ctx.power - 1) * np.sign(rows)
        dx = torch.from_numpy(slope * grad.cpu().numpy())
        return dx, None
""",
        ["return dx.to(x.device), None"],
    ),
    "where forward leaves its result on the CPU": (
        """    def forward(ctx, x, power):
        \"\"\"A power of the size.\"\"\"
        ctx.rows, ctx.power = x.detach().cpu().numpy(), power
        return torch.from_numpy(np.abs(ctx.rows) ** power)
    @staticmethod
    def backward(ctx, grad):
        slope = ctx.power * np.abs(ctx.rows) ** (ctx.power - 1) * np.sign(ctx.rows)
        grads = (torch.from_numpy(slope) * grad, None)
        return grads
""",
        ["ctx.x_device = x.device", "grads = ((torch.from_numpy(slope) * grad).to(ctx.x_device), None)"],
    ),
    "a result under a name": (
        """    def forward(ctx, x, power):
        ctx.rows, ctx.power = x.detach().cpu().numpy(), power
        made = torch.as_tensor(np.abs(ctx.rows) ** power, dtype=x.dtype, device=x.device)
        return made
    @staticmethod
    def backward(ctx, grad):
        slope = ctx.power * np.abs(ctx.rows) ** (ctx.power - 1) * np.sign(ctx.rows)
        slope = torch.as_tensor(slope)
        return slope.mul(grad.cpu()), None
""",
        ["return slope.mul(grad.cpu()).to(grad.device), None"],
    ),
}
KEPT = {
    "one that is moved": """    def forward(ctx, x, power):
        ctx.power = power
        return x * power
    @staticmethod
    def backward(ctx, grad):
        return (torch.from_numpy(np.full(6, ctx.power)) * grad.cpu()).to(grad), None
""",
    "a number of gradients that is not seen": """    def forward(ctx, x, power):
        ctx.power = power
        return x * power
    @staticmethod
    def backward(ctx, *grads):
        return tuple(one * ctx.power for one in grads) + (None,)
""",
}


@pytest.mark.parametrize(("methods", "wanted"), BACK.values(), ids=BACK)
def test_the_gradient_goes_back(tmp_path: pathlib.Path, methods: str, wanted: list[str]) -> None:
    """In the `return`, with the device of the input; where all is on one device nothing changes."""
    pytest.importorskip("torch")
    source = HEAD + methods + CALL
    after = rewritten(tmp_path, "gradient_on_input_device", source, "Skew.apply(", message=SAID, fields=dict(FIELDS))
    assert changed_lines(source, after) == wanted
    before, behind = (run(one, tmp_path / name)["out"] for one, name in ((source, "a.py"), (after, "b.py")))
    assert before.dtype == behind.dtype
    assert before.equal(behind)


@pytest.mark.parametrize("methods", KEPT.values(), ids=KEPT)
def test_what_is_not_of_the_cpu_stays(tmp_path: pathlib.Path, methods: str) -> None:
    """Nothing is guessed where the gradients cannot be told apart, or one goes back already."""
    source = HEAD + methods + CALL
    fields = {**FIELDS, "index": "1"}
    assert rewritten(tmp_path, "gradient_on_input_device", source, "Skew.apply(", message=SAID, fields=fields) == source


@pytest.mark.parametrize(
    "fields", [{**FIELDS, "node": "OtherBackward"}, {**FIELDS, "got_device": "cuda:1", "expected_device": "cpu"}, {}]
)
def test_another_gradient(tmp_path: pathlib.Path, fields: dict) -> None:
    """Of another Function, or of another shape."""
    source = HEAD + BACK["a result under a name"][0] + CALL
    assert rewritten(tmp_path, "gradient_on_input_device", source, "Skew.apply(", message=SAID, fields=fields) == source
