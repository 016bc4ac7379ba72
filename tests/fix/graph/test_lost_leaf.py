"""The flag of a leaf that nothing holds goes to the result that is computed from it, where that one's gradient is read."""

from __future__ import annotations

import dataclasses
import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import WarningRecord
from tests.fix.mending import run
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

HEAD = """import torch
torch.manual_seed(0)
net = torch.nn.Linear(3, 1)

def inside(x, delta):
    return (x + delta).clamp(0, 1) - x

"""
ATTACK = """
x = torch.rand(2, 3)
delta = {start}
for _ in range(2):
    net(x + delta).sum().backward()
    ascent = delta.grad.sign()
    delta = inside(x, delta.detach() + 0.1 * ascent).requires_grad_()
"""
CALLED = ATTACK.format(start="start(x)")
REGISTRY = 'STARTS = {"random": start}\n' + ATTACK.format(start='STARTS["random"](x)')
LOST = {
    "under a name": (
        "def start(x):\n    noise = torch.rand_like(x).requires_grad_()\n    return inside(x, noise)\n" + CALLED,
        ["noise = torch.rand_like(x)", "return inside(x, noise).requires_grad_(True)"],
    ),
    "in the call": (
        "def start(x):\n    return inside(x, torch.zeros_like(x).uniform_(-1, 1).requires_grad_())\n" + CALLED,
        ["return inside(x, torch.zeros_like(x).uniform_(-1, 1)).requires_grad_(True)"],
    ),
    "made with the flag, picked by name": (
        "def start(x):\n    noise = torch.rand_like(x, requires_grad=True)\n    return noise.clamp(0, 1) - x\n\n" + REGISTRY,
        ["noise = torch.rand_like(x)", "return (noise.clamp(0, 1) - x).requires_grad_(True)"],
    ),
    "flagged by a statement": (
        "def start(x):\n    noise = torch.rand_like(x)\n    noise.requires_grad_(True)\n    return inside(x, noise)\n" + CALLED,
        ["return inside(x, noise).detach().requires_grad_(True)"],
    ),
    "bound anew on one way": (
        "def start(x, far=True):\n    noise = torch.zeros_like(x, requires_grad=True)\n    if far:\n"
        "        noise.data.uniform_(-1, 1)\n        noise = inside(x, noise)\n    return noise\n" + CALLED,
        ["noise = inside(x, noise).detach().requires_grad_(True)"],
    ),
    "in the place": (
        ATTACK.format(start="torch.rand_like(x)").replace("for _", "delta = inside(x, delta.requires_grad_())\nfor _"),
        ["delta = inside(x, delta).requires_grad_(True)"],
    ),
}  # fmt: skip
KEPT = {
    "a leaf that is returned as well": "def start(x):\n    noise = torch.rand_like(x).requires_grad_()\n"
    "    return inside(x, noise), noise\n" + ATTACK.format(start="start(x)[0]"),
    "a leaf that a caller has": "def start(x, noise):\n    noise.requires_grad_()\n    return inside(x, noise)\n"
    + ATTACK.format(start="start(x, torch.zeros_like(x))"),
    "a leaf that is read again": "kept = []\ndef start(x):\n    noise = torch.rand_like(x).requires_grad_()\n"
    "    kept.append(noise)\n    return inside(x, noise)\n" + CALLED,
    "a result of a network": "made = torch.nn.Linear(3, 3)\ndef start(x):\n    noise = torch.rand_like(x)\n"
    "    noise.requires_grad_()\n    return made(noise)\n" + CALLED,
    "a leaf of another function": "def penalty(x):\n    noise = torch.rand_like(x).requires_grad_()\n"
    "    return inside(x, noise).sum()\n\ndef start(x):\n    return net.weight * torch.rand_like(x)\n" + CALLED,
}  # fmt: skip


def _mended(source: str, folder: pathlib.Path, *, warned: bool = True) -> str:
    line = line_of(source, "ascent =")
    said = WarningRecord(
        category="UserWarning", file="train.py", line=line,
        message="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed.",
    )  # fmt: skip
    incident = dataclasses.replace(failed({"train.py": line}), warnings=(said,) if warned else ())
    proposal = best("make_leaf_last", write(folder, {"train.py": source}), incident=incident)
    after = splice(source, proposal.edits) if proposal is not None else source
    assert after is not None
    return after


@pytest.mark.filterwarnings("ignore:The .grad attribute")
@pytest.mark.parametrize(("body", "wanted"), LOST.values(), ids=LOST)
def test_the_result_becomes_the_leaf(tmp_path, body: str, wanted: list[str]) -> None:
    """The program fails before the edit and runs after it; a second time nothing is left to do."""
    with pytest.raises(AttributeError):
        run(HEAD + body, tmp_path / "train.py")
    after = _mended(HEAD + body, tmp_path)
    assert changed_lines(HEAD + body, after) == wanted
    assert run(after, tmp_path / "train.py")["delta"].is_leaf
    assert _mended(after, tmp_path) == after


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_leaves_that_something_holds_stay(tmp_path, body: str) -> None:
    """What a caller or a list has may be what is meant; a cut would take a network's gradients."""
    assert _mended(HEAD + body, tmp_path) == HEAD + body


def test_nothing_without_the_warning(tmp_path) -> None:
    """A gradient that is None of a leaf has another cause."""
    source = HEAD + LOST["in the call"][0]
    assert _mended(source, tmp_path, warned=False) == source
