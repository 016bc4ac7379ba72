"""A custom Function whose backward met two dtypes runs it in the autocast state of its forward."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SOURCE = """import torch
from torch import nn


class Signs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.sign().t()

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.sign(), grad.t() @ x


with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = Signs.apply(x, weight).sum()
loss.backward()
"""
AT = "return grad @ weight"
RIGHT = {
    "decorated": SOURCE.replace("    def forward", '    @torch.amp.custom_fwd(device_type="cuda")\n    def forward'),
    "no autocast": SOURCE.replace('torch.autocast("cuda", dtype=torch.bfloat16)', "torch.enable_grad()"),
    "a device of no known name": SOURCE.replace('"cuda", dtype', "device, dtype"),
    "a context that is set up": SOURCE.replace("    @staticmethod\n    def backward", "    @staticmethod\n    def setup_context(ctx, inputs, output):\n        pass\n\n    @staticmethod\n    def backward"),
    "a class of another kind": SOURCE.replace("torch.autograd.Function", "nn.Module"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("region", "device"), [('torch.autocast("cuda", ', "cuda"), ("torch.amp.autocast(device_type='cpu', ", "cpu")]
)
def test_both_methods_are_decorated(region: str, device: str, tmp_path: pathlib.Path) -> None:
    source = SOURCE.replace('torch.autocast("cuda", ', region)
    after = rewritten(tmp_path, "custom_function_under_autocast", source, AT)
    assert diff_lines(source, after) == [
        f'+    @torch.amp.custom_fwd(device_type="{device}")',
        f'+    @torch.amp.custom_bwd(device_type="{device}")',
    ]
    assert rewritten(tmp_path, "custom_function_under_autocast", after, AT) == after


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_other_functions_stay(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "custom_function_under_autocast", source, AT) == source
