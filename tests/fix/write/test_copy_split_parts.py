"""Parts that a helper writes into are copies of what one call took apart."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Frame, Incident
from tests.fix.rewriting import changed_lines, line_of, write

SOURCE = """import torch

def turn_(t, c):
    a = t[..., :2].clone()
    t[..., :2] = a * c

def attend(x):
    q, k, v = {split}
    for z in (q, k):
        turn_(z, 0.5)
    return q @ k.mT @ v{more}
"""
MESSAGE = "Output 0 of UnbindBackward0 is a view and is being modified inplace. This view is the output of a function that returns multiple views."
MENDED = {
    "a method": ("x.unbind(0)", "", "q, k, v = (part.clone() for part in x.unbind(0))"),
    "a chain": (
        "x.view(2, 3, 4).permute(1, 0, 2).unbind(0)",
        "",
        "q, k, v = (part.clone() for part in x.view(2, 3, 4).permute(1, 0, 2).unbind(0))",
    ),
    "what a module gives": (
        "self.qkv(x).unflatten(-1, (3, -1)).unbind(-2)",
        " + self.out(q)",
        "q, k, v = (part.clone() for part in self.qkv(x).unflatten(-1, (3, -1)).unbind(-2))",
    ),
    "a function": ("torch.chunk(x, 3)", "", "q, k, v = (part.clone() for part in torch.chunk(x, 3))"),
}
LEFT = {
    "the whole is read again": ("x.unbind(0)", " + x.sum()"),
    "a part of it": ("x[0].chunk(3)", " + x.sum()"),
    "made one by one": ("x[0], x[1], x[2]", ""),
}


def mended(source: str, folder: pathlib.Path, message: str = MESSAGE) -> str:
    program = write(folder, {"train.py": source})
    lines = [line_of(source, words) for words in ("turn_(z", "t[..., :2] = ")]
    frames = tuple(Frame(file="train.py", line=one) for one in lines)
    incident = Incident(exceptions=(ExceptionRecord(type="RuntimeError", message=message, frames=frames),))
    found = list(find_codemod("copy_split_parts")(Context(program=program, incident=incident)))
    return splice(source, found[0].edits) or "" if found else source


@pytest.mark.torch
@pytest.mark.parametrize(("split", "more", "wanted"), MENDED.values(), ids=MENDED)
def test_a_helper_writes_into_copies(split: str, more: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """What is written is read, with its gradient; a second time nothing is left to do."""
    torch = pytest.importorskip("torch")
    source = SOURCE.format(split=split, more=more)
    after = mended(source, tmp_path)
    assert changed_lines(source, after) == [wanted]
    x = torch.randn(3, 2, 4).requires_grad_()
    space: dict[str, object] = {}
    exec(compile(after, "after", "exec"), space)  # noqa: S102
    if split == "x.unbind(0)":
        space["attend"](x).sum().backward()
        q, k = (torch.cat([one[..., :2] * 0.5, one[..., 2:]], -1) for one in x.detach()[:2])
        assert torch.allclose(x.grad[2], (q @ k.mT).mT.sum(-1, keepdim=True).expand(2, 4))


@pytest.mark.parametrize(("split", "more"), LEFT.values(), ids=LEFT)
def test_others_stay(split: str, more: str, tmp_path: pathlib.Path) -> None:
    """What is read again would miss the write; what indexing made may be written."""
    source = SOURCE.format(split=split, more=more)
    assert mended(source, tmp_path) == source
    assert mended(SOURCE.format(split="x.unbind(0)", more=""), tmp_path, "another") == SOURCE.format(
        split="x.unbind(0)", more=""
    )
