"""A call behind the loss asks a function to leave out what an option of it cuts."""

from __future__ import annotations

import dataclasses
import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.trace import CUT, TracedLine
from tests.fix.rewriting import best, diff_lines, failed, line_of, write

DICE = """import torch
from torch import nn

def binarise(p, threshold):
    if threshold is None:
        return p
    return (p > threshold).to(p.dtype)

def overlap(p, y, threshold=0.5):
    p = binarise(p, threshold)
    return (p * y).sum(), p.sum() + y.sum()

def dice(p, y, smooth=1.0, threshold=0.5):
    both, areas = overlap(p, y, threshold)
    return (2 * both + smooth) / (areas + smooth)

LOSSES = {}

def register(cls):
    LOSSES[cls.__name__] = cls
    return cls

@register
class DiceLoss(nn.Module):
    def forward(self, scores, y):
        return 1 - dice(scores.sigmoid(), y)

net, criterion = nn.Linear(4, 2), LOSSES["DiceLoss"]()
for x, y in loader:
    scores = net(x)
    loss = criterion(scores, y)
    loss.backward()
    with torch.no_grad():
        print(dice(scores.sigmoid(), y))
"""
EMBED = """import torch
from torch import nn
from torch.nn import functional as F

class Encoder(nn.Module):
    def embed(self, x, detach=True):
        z = self.body(x)
        if detach:
            z = z.detach()
        return z

def contrast(model, a, b):
    left, right = model.embed(a), model.embed(b, True)
    return F.cross_entropy(left @ right.T, torch.arange(len(a)))

model = Encoder()
loss = contrast(model, a, b)
loss.backward()
bank = model.embed(a).numpy()
"""
EARLY = EMBED.replace(
    "        if detach:\n            z = z.detach()\n        return z",
    "        if not detach:\n            return z\n        return z.detach()",
)
CHOSEN = EMBED.replace("z = z.detach()\n        return z", "return z.detach()\n        else:\n            return z")
EDITS = {
    "an option that is None": (DICE, "        return 1 - dice(scores.sigmoid(), y, threshold=None)"),
    "handed on by the loss": (
        DICE.replace("dice(scores.sigmoid(), y)\n\nnet", "dice(scores.sigmoid(), y, 1.0, 0.4)\n\nnet"),
        "        return 1 - dice(scores.sigmoid(), y, 1.0, None)",
    ),
    "a flag": (EMBED, "    left, right = model.embed(a, detach=False), model.embed(b, False)"),
    "an early return": (EARLY, "    left, right = model.embed(a, detach=False), model.embed(b, False)"),
    "the other branch": (CHOSEN, "    left, right = model.embed(a, detach=False), model.embed(b, False)"),
}  # fmt: skip
AIMED = EMBED.replace("F.cross_entropy(left @ right.T, torch.arange(len(a)))", "F.mse_loss(left, right)")
MODE = EMBED.replace(
    "        z = self.body(x)\n        if detach:\n            z = z.detach()\n        return z",
    "        with torch.set_grad_enabled(detach):\n            return self.body(x)  # .detach()",
)
MODE = (
    MODE.replace("detach=True", "detach=False")
    .replace("model.embed(b, True)", "model.embed(b)")
    .replace("left @ right.T, torch.arange(len(a))", "left, labels")
)
EDITS |= {
    "a prediction, not its target": (AIMED, "    left, right = model.embed(a, detach=False), model.embed(b, True)"),
    "grad mode": (MODE, "    left, right = model.embed(a, detach=True), model.embed(b)"),
}  # fmt: skip
STAYS = {
    "two views of a loss of the program's own": EMBED.replace("F.cross_entropy(left @ right.T, torch.arange(len(a)))", "(left * right).sum()"),
    "no option": EMBED.replace("        if detach:\n            z = z.detach()", "        z = z.detach()"),
    "an option that is computed": DICE.replace("dice(scores.sigmoid(), y)\n\nnet", "dice(scores.sigmoid(), y, threshold=self.cut)\n\nnet"),
    "a value that is no flag": EMBED.replace("detach=True", "detach=3"),
    "a test of another thing": EMBED.replace("if detach:", "if self.training:"),
}  # fmt: skip


def mended(folder: pathlib.Path, source: str, other: str | None = None) -> str:
    """The program after the best edit, where the trace saw the line with `> threshold` or `.detach()` cut the loss, and perhaps another."""
    program = write(folder, {"train.py": source})
    at = line_of(source, "> threshold" if "> threshold" in source else ".detach()")
    traced = TracedLine(kind=CUT, operation="detach", file=str(folder / "train.py"), line=at)
    incident = failed({"train.py": line_of(source, "loss.backward()")}, code="loss.backward()")
    lines = (traced, dataclasses.replace(traced, line=line_of(source, other))) if other else (traced,)
    proposal = best("option_of_cut", program, incident=dataclasses.replace(incident, traced=lines))
    after = splice(source, proposal.edits) if proposal is not None else source
    assert after is not None
    return after


@pytest.mark.parametrize("name", EDITS)
def test_the_call_of_the_loss_asks_for_the_value(tmp_path: pathlib.Path, name: str) -> None:
    source, line = EDITS[name]
    assert diff_lines(source, mended(tmp_path, source))[1:] == [f"+{line}"]


@pytest.mark.parametrize("name", STAYS)
def test_what_no_option_decides_stays(tmp_path: pathlib.Path, name: str) -> None:
    assert mended(tmp_path, STAYS[name]) == STAYS[name]


def test_another_cut_may_be_the_fault(tmp_path: pathlib.Path) -> None:
    """A target may be meant to be cut by its option, and what is compared with it be cut by mistake."""
    source = EMBED.replace("    return F.cross", "    left = left.detach()  # by mistake\n    return F.cross")
    assert mended(tmp_path, source, "# by mistake") == source
