"""A frozen part hands gradients on: its forward is not wrapped in `no_grad`."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SOURCE = """import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
def freeze(module):
    for p in module.parameters():
        p.requires_grad_(False)
    module.forward = torch.no_grad()(module.forward)
    return module
layer, prompt = freeze(nn.Linear(3, 3)), nn.Parameter(torch.ones(3))
loss = checkpoint(layer, prompt * 2, use_reentrant=True).sum() + prompt.sum()
loss.backward()
assert not torch.equal(prompt.grad, torch.ones(3)) and layer.weight.grad is None
"""
LEFT = {
    "another function": SOURCE.replace("torch.no_grad()(module.forward)", "torch.no_grad()(module.embed)"),
    "two parts": SOURCE.replace(
        "    return module\n", "    module.forward = torch.no_grad()(module.forward)\n    return module\n"
    ),
    "a wrapper of its own": SOURCE.replace("torch.no_grad()", "timed()"),
    "a block": SOURCE.replace(
        "module.forward = torch.no_grad()(module.forward)", "with torch.no_grad(): module(torch.ones(3))"
    ),
}


@pytest.mark.torch
def test_the_wrapper_is_left_out(tmp_path: pathlib.Path) -> None:
    """The program fails as it is; with the edit what stands below the part trains, and the part does not."""
    pytest.importorskip("torch")
    after = rewritten(tmp_path, "graph_through_frozen", SOURCE, at="loss.backward()")
    assert diff_lines(SOURCE, after) == ["-    module.forward = torch.no_grad()(module.forward)"]
    with pytest.raises(RuntimeError, match="none of output has requires_grad"):
        exec(SOURCE, {"__name__": "train"})  # noqa: S102 - the program of the test
    exec(after, {"__name__": "train"})  # noqa: S102 - the program of the test


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_others_are_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "graph_through_frozen", source, at="loss.backward()") == source
