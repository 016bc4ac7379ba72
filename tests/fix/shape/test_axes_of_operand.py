"""What holds a value for each sample, channel or step is laid on its own axis; each case runs, fails, is mended and runs."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import mended, run  # noqa: E402
from tests.fix.rewriting import changed_lines  # noqa: E402

HEAD = """import torch
from torch import nn

"""
# The body of a step, the line that is changed, and what the result is equal to.
WRONG = {
    "noise levels of images": (
        "keep = table[t]\n    out = keep.sqrt() * images + (1 - keep).sqrt() * images",
        "keep = table[t][:, None, None, None]",
        "table[t].view(-1, 1, 1, 1).sqrt() * images + (1 - table[t].view(-1, 1, 1, 1)).sqrt() * images",
    ),
    "a mask of steps": ("out = (rows * mask).sum(1)", "out = (rows * mask[:, :, None]).sum(1)", "(rows * mask.unsqueeze(-1)).sum(1)"),
    "a mean over a mask": (
        "out = (rows * mask[:, :, None]).sum(1) / mask.sum(1)",
        "out = (rows * mask[:, :, None]).sum(1) / mask.sum(1)[:, None]",
        "(rows * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)",
    ),
    "a code of features beside a sequence": ("out = rows + code", "out = rows + code[:, None, :]", "rows + code.unsqueeze(1)"),
    "a code beside a convolution": (
        "out = conv(images) + wide",
        "out = conv(images) + wide[:, :, None, None]",
        "conv(images) + wide.view(5, 7, 1, 1)",
    ),
    "a layer of what was computed on the way": (
        "out = conv(images) + linear(code * 2)",
        "out = conv(images) + linear(code * 2)[:, :, None, None]",
        "conv(images) + linear(code * 2).view(5, 7, 1, 1)",
    ),
    "a small network of it": (
        "out = net(code.exp()) * conv(images)",
        "out = net(code.exp())[:, :, None, None] * conv(images)",
        "net(code.exp()).view(5, 7, 1, 1) * conv(images)",
    ),
    "a layer beside images that were seen": (
        "features = conv(images)\n    out = features + linear(code)",
        "out = features + linear(code)[:, :, None, None]",
        "conv(images) + linear(code).view(5, 7, 1, 1)",
    ),
    "a code beside a linear layer": (
        "out = linear(rows) + wide",
        "out = linear(rows) + wide[:, None, :]",
        "linear(rows) + wide.unsqueeze(1)",
    ),
    "a scale for each channel": (
        "out = images / scale.clamp(min=0.5)",
        "out = images / scale.clamp(min=0.5)[:, None, None]",
        "images / scale.clamp(min=0.5).view(3, 1, 1)",
    ),
    "a mean and a deviation for each channel": (
        "out = (images - scale) / spread",
        "out = (images - scale[:, None, None]) / spread[:, None, None]",
        "(images - scale.view(3, 1, 1)) / spread.view(3, 1, 1)",
    ),
    "a value that is read elsewhere too": (
        "keep = table[t]\n    out = images * keep\n    spare = keep.sum()",
        "out = images * keep[:, None, None, None]",
        "images * table[t].view(-1, 1, 1, 1)",
    ),
    "keys that are hidden": (
        "out = scores.masked_fill(mask < 0.5, float('-inf'))",
        "out = scores.masked_fill((mask < 0.5)[:, None, None, :], float('-inf'))",
        "scores.masked_fill((mask < 0.5).view(5, 1, 1, 6), float('-inf'))",
    ),
    "keys that a large number hides": (
        "out = (scores + (1 - mask) * -1e4).softmax(-1)",
        "out = (scores + ((1 - mask) * -1e4)[:, None, None, :]).softmax(-1)",
        "(scores + ((1 - mask) * -1e4).view(5, 1, 1, 6)).softmax(-1)",
    ),
    "keys from which one is taken away": (
        "out = (scores - 1e9 * mask).softmax(-1)",
        "out = (scores - (1e9 * mask)[:, None, None, :]).softmax(-1)",
        "(scores - (1e9 * mask).view(5, 1, 1, 6)).softmax(-1)",
    ),
    "a loss for each element": (
        "out = t * nn.functional.huber_loss(mask * 2, mask, reduction='none')",
        "out = t[:, None] * nn.functional.huber_loss(mask * 2, mask, reduction='none')",
        "t.view(5, 1) * nn.functional.huber_loss(mask * 2, mask, reduction='none')",
    ),
    "a loss for each label": (
        "out = t * nn.functional.cross_entropy(scores, labels, reduction='none')",
        "out = t[:, None, None] * nn.functional.cross_entropy(scores, labels, reduction='none')",
        "t.view(5, 1, 1) * nn.functional.cross_entropy(scores, labels, reduction='none')",
    ),
    "what a mask chooses, in a loop": (
        "out = rows[:, 0]\n    for i in range(6):\n        out = torch.where(mask[:, i] > 0.5, rows[:, i], out)",
        "out = torch.where((mask[:, i] > 0.5)[:, None], rows[:, i], out)",
        "rows[:, 0]\n    for i in range(6):\n        out = torch.where(mask[:, i, None] > 0.5, rows[:, i], out)",
    ),
    "two rows whose result meets a table": (
        "out = (((t + 2) * spread) + column).cos()", "out = (((t + 2)[:, None] * spread) + column).cos()",
        "((t + 2).unsqueeze(1) * spread + column).cos()",
    ),
    "in place": ("out = rows.clone()\n    out *= mask", "out *= mask[:, :, None]", "rows * mask.unsqueeze(-1)"),
}  # fmt: skip
# Shapes that leave several ways or none, and other failures.
RIGHT = {
    "queries or keys": "out = scores * mask",
    "no axis of that size": "out = rows * torch.ones(9)",
    "as many axes": "out = rows * torch.ones(5, 9, 4)",
    "the smaller one is written": "code += rows",
    "two rows alone": "out = t * spread",
    "two rows whose result meets another row": "out = t * spread + scale",
    "a product of matrices": "out = rows @ code",
}
NAMES = {
    "images": "torch.rand(5, 3, 9, 11)", "rows": "torch.rand(5, 6, 4)", "mask": "(torch.rand(5, 6) < 0.7).float() + 0.1",
    "code": "torch.rand(5, 4)", "wide": "torch.rand(5, 7)", "scale": "torch.rand(3)",
    "spread": "torch.rand(3) + 1", "table": "torch.rand(20)",
    "t": "torch.arange(5)", "column": "torch.rand(5, 1)", "scores": "torch.rand(5, 2, 6, 6)",
    "labels": "torch.ones(5, 6, 6).long()",
}  # fmt: skip
LAYERS = "torch.manual_seed(0)\nconv, linear = nn.Conv2d(3, 7, 3), nn.Linear(4, 7)\nnet = nn.Sequential(nn.Linear(4, 9), nn.SiLU(), nn.Linear(9, 7))\n\n\n"


def program(body: str) -> str:
    given = ", ".join(NAMES)
    made = f"torch.manual_seed(1)\nout = step({', '.join(NAMES.values())})\n"
    return f"{HEAD}{LAYERS}def step({given}):\n    {body}\n    return out\n\n\n{made}"


@pytest.mark.parametrize(("body", "line", "equal"), WRONG.values(), ids=WRONG)
def test_each_value_meets_its_own_axis(tmp_path: pathlib.Path, body: str, line: str, equal: str) -> None:
    """The mended program computes what the words of its author mean."""
    after = mended("axes_of_operand", program(body), tmp_path)
    assert changed_lines(program(body), after) == [line]
    wanted = run(program(f"out = {equal}"), tmp_path / "wanted.py")["out"]
    assert torch.equal(run(after, tmp_path / "after.py")["out"], wanted)


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_nothing_is_guessed(tmp_path: pathlib.Path, body: str) -> None:
    """Where the sizes fit two axes, or none."""
    assert mended("axes_of_operand", program(body), tmp_path) == program(body)
