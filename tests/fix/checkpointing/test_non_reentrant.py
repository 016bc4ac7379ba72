"""Checkpointing becomes non-reentrant where it is chosen, unless the segment writes in place."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """from functools import partial
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
net = nn.Linear(4, 4)
x = torch.randn(2, 4)
"""
RIGHT = {
    "the form is right": (
        HEAD
        + """loss = checkpoint(net, x, use_reentrant=False).sum()
loss.backward()
""",
        "loss.backward()",
    ),
    "no checkpointing": (
        HEAD
        + """loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
    ),
    "a segment that writes what it saved": (
        HEAD
        + """class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, h):
        h = torch.sigmoid(self.a(h))
        h += 1
        return h


block = Block()
loss = checkpoint(block, x, use_reentrant=True).sum()
loss.backward()
""",
        "loss.backward()",
    ),
    "a helper of the segment that writes": (
        HEAD
        + """def scaled(h):
    h = torch.exp(h)
    h.mul_(2)
    return h


def segment(h):
    return scaled(net(h))


loss = checkpoint(segment, x, use_reentrant=True).sum()
loss.backward()
""",
        "loss.backward()",
    ),
    "a library's segments over a layer that writes what it saved": (
        HEAD
        + """class Block(nn.Module):
    def forward(self, h):
        h = torch.sigmoid(h)
        h += 1
        return h


net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
    ),
    "a form that cannot be read": (
        HEAD
        + """form = bool(len(x))
loss = checkpoint(net, x, use_reentrant=form).sum()
loss.backward()
""",
        "loss.backward()",
    ),
}
WRONG = {
    "a call": (
        HEAD
        + """loss = checkpoint(net, x, use_reentrant=True).sum()
loss.backward()
""",
        "loss.backward()",
        ["loss = checkpoint(net, x, use_reentrant=False).sum()"],
    ),
    "a call that leaves it out": (
        HEAD
        + """loss = checkpoint(net, x).sum()
loss.backward()
""",
        "loss.backward()",
        ["loss = checkpoint(net, x, use_reentrant=False).sum()"],
    ),
    "a partial": (
        HEAD
        + """run = partial(checkpoint, use_reentrant=True)
loss = run(net, x).sum()
loss.backward()
""",
        "loss.backward()",
        ["run = partial(checkpoint, use_reentrant=False)"],
    ),
    "keyword arguments for transformers": (
        HEAD
        + """options = {"use_reentrant": True}
net.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)
loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
        ['options = {"use_reentrant": False}'],
    ),
    "an item that is set": (
        HEAD
        + """options = {}
options["use_reentrant"] = True
net.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)
loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
        ['options["use_reentrant"] = False'],
    ),
    "a field of a dataclass": (
        HEAD
        + """from dataclasses import asdict, dataclass, field


@dataclass
class Arguments:
    gradient_checkpointing: bool = True
    gradient_checkpointing_kwargs: dict = field(default_factory=lambda: {"use_reentrant": True})


args = Library(**asdict(Arguments()))
loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
        ['gradient_checkpointing_kwargs: dict = field(default_factory=lambda: {"use_reentrant": False})'],
    ),
    "a constant behind a name": (
        HEAD
        + """REENTRANT = True
loss = checkpoint(net, x, use_reentrant=REENTRANT).sum()
loss.backward()
""",
        "loss.backward()",
        ["REENTRANT = False"],
    ),
    "every call of a loop": (
        HEAD
        + """for _ in range(2):
    x = checkpoint(net, x, use_reentrant=True)
loss = checkpoint(net, x, use_reentrant=True).sum()
loss.backward()
""",
        "loss.backward()",
        ["x = checkpoint(net, x, use_reentrant=False)", "loss = checkpoint(net, x, use_reentrant=False).sum()"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Segments that write in place, and forms that cannot be read, are left alone."""
    assert rewritten(tmp_path, "non_reentrant", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """All segments get the non-reentrant form; a second time nothing is left to do."""
    after = rewritten(tmp_path, "non_reentrant", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "non_reentrant", after, again) == after
