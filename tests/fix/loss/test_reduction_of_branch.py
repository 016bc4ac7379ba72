"""A branch of a loss that leaves out the reduction of the other branches."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

HARDEST = """import torch
from torch import nn
from torch.nn import functional as F

class HardestLoss(nn.Module):
    def __init__(self, kept=20):
        super().__init__()
        self.kept = kept

    def forward(self, logits, label):
        losses = F.cross_entropy(logits, label, reduction="none")
        if len(losses) <= self.kept:
            return losses
        return losses.topk(self.kept).values.mean()

net, criterion = nn.Linear(4, 2), HardestLoss()
for x, y in loader:
    loss = criterion(net(x), y)
    loss.backward()
"""
EDITS = {
    "a module": (HARDEST, "return losses.mean()"),
    "by torch": (HARDEST.replace("losses.topk(self.kept).values.mean()", "torch.sum(losses.topk(9).values)"), "return losses.sum()"),
    "a function": (
        "import torch\n"
        "def positives(scores, wanted):\n"
        "    if wanted.any():\n"
        "        return (scores - 1)[wanted].square().mean()\n"
        "    return scores.square()\n"
        "loss = positives(net(x), y)\n"
        "loss.backward()\n",
        "return scores.square().mean()",
    ),
}  # fmt: skip
OTHERWISE = {
    "an option": HARDEST.replace("len(losses) <= self.kept", 'self.reduction == "none"'),
    "an option by another name": HARDEST.replace("len(losses) <= self.kept", "not self.reduces"),
    "two ways": HARDEST.replace(
        "        return losses.topk",
        "        if self.training:\n            return losses.sum()\n        return losses.topk",
    ),
    "none is reduced": HARDEST.replace(".values.mean()", ".values"),
}


@pytest.mark.parametrize(("source", "wanted"), EDITS.values(), ids=EDITS)
def test_one_branch_gives_the_elements_back(source: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """It is reduced as the others are, and nothing is left to do."""
    after = rewritten(tmp_path, "reduce_loss", source, "loss.backward")
    assert [one[1:].strip() for one in diff_lines(source, after)][1:] == [wanted]


@pytest.mark.parametrize("source", OTHERWISE.values(), ids=OTHERWISE)
def test_what_no_branch_tells(source: str, tmp_path: pathlib.Path) -> None:
    """The caller's line is edited, or none: not the function."""
    after = rewritten(tmp_path, "reduce_loss", source, "loss.backward")
    assert all("loss" in one and "return" not in one for one in diff_lines(source, after))
