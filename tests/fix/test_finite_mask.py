"""Masks of minus infinity become the dtype's smallest number."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import math\nimport torch\nfrom torch import nn\nnet = nn.Linear(4, 4)\nx, pad = torch.randn(8, 4), torch.zeros(8, 4).bool()\nscores = net(x)\n"

RIGHT = {
    "a finite number": "scores = scores.masked_fill(pad, -1e9)",
    "the dtype's own end": "scores = scores.masked_fill(pad, torch.finfo(scores.dtype).min)",
    "zeros": "scores = scores.masked_fill(pad, 0.0)",
    "a mask of data": "x = x.masked_fill(pad, float('-inf'))",
    "a mask without grad": "with torch.no_grad():\n    best = scores.masked_fill(pad, float('-inf')).argmax(-1)",
    "plus infinity": "low = scores.masked_fill(pad, float('inf')).amin(-1)",
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_other_masks_stay(tmp_path, body: str) -> None:
    """Finite masks and masks without gradient are left alone."""
    source = f"{HEAD}{body}\nloss = scores.softmax(-1).sum()\nloss.backward()\n"
    assert rewritten(tmp_path, "finite_mask", source, "loss.backward()") == source


LEAST = "torch.finfo(scores.dtype).min"
WRONG = {
    "float of a word": (
        "scores = scores.masked_fill(pad, float('-inf'))",
        f"scores = scores.masked_fill(pad, {LEAST})",
    ),
    "minus math.inf": ("scores = scores.masked_fill(pad, -math.inf)", f"scores = scores.masked_fill(pad, {LEAST})"),
    "minus torch.inf": ("scores = scores.masked_fill(pad, -torch.inf)", f"scores = scores.masked_fill(pad, {LEAST})"),
    "in place": ("scores.masked_fill_(pad, float('-inf'))", f"scores.masked_fill_(pad, {LEAST})"),
    "by where": ("scores = torch.where(pad, float('-inf'), scores)", f"scores = torch.where(pad, {LEAST}, scores)"),
    "as a function": (
        "scores = torch.masked_fill(scores, pad, -float('inf'))",
        f"scores = torch.masked_fill(scores, pad, {LEAST})",
    ),
}


@pytest.mark.parametrize(("body", "wanted"), WRONG.values(), ids=WRONG)
def test_infinite_masks_become_finite(tmp_path, body: str, wanted: str) -> None:
    """However minus infinity is spelled, the smallest number of the scores' dtype takes its place."""
    source = f"{HEAD}{body}\nloss = scores.softmax(-1).sum()\nloss.backward()\n"
    after = rewritten(tmp_path, "finite_mask", source, "loss.backward()")
    assert changed_lines(source, after) == [wanted]
    assert rewritten(tmp_path, "finite_mask", after, "loss.backward()") == after


RANGES = {
    "float32 scores": ("", "scores = scores.masked_fill(pad, -1e9)", []),
    "float16 scores": (
        "net.half()\n",
        "scores = scores.masked_fill(pad, -1e9)",
        [f"scores = scores.masked_fill(pad, {LEAST})"],
    ),
    "a number that float16 has": ("net.half()\n", "scores = scores.masked_fill(pad, -1e4)", []),
}


@pytest.mark.parametrize(("head", "body", "wanted"), RANGES.values(), ids=RANGES)
def test_constants_of_float16(tmp_path, head: str, body: str, wanted: list[str]) -> None:
    """A constant that float16 does not have is replaced only where the program uses float16."""
    source = f"{HEAD}{head}{body}\nloss = scores.softmax(-1).sum()\nloss.backward()\n"
    after = rewritten(tmp_path, "finite_mask", source, "loss.backward()", options={"by_range": True})
    assert changed_lines(source, after) == wanted
