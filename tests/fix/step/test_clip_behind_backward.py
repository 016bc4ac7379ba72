"""A clip that came before the backward whose gradients it is to bound moves between that and the step."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import EARLY_CLIP, Fact, Incident, LogLine
from explainer.model.verification import CLIPS_EARLY
from tests.fix.rewriting import diff_lines, failed, line_of, rewritten, write

HEAD = """import torch
from torch.nn.utils import clip_grad_norm_
net, other = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
opt, second = torch.optim.SGD(net.parameters(), lr=0.1), torch.optim.SGD(other.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
"""
LOOP = "for x in data:\n    loss = net(x).mean()\n    opt.zero_grad()\n"
CLIP = "    clip_grad_norm_(net.parameters(), 1.0)\n"
BACKWARD, STEP = "    loss.backward()\n", "    opt.step()\n"
HELPER = """class Learner:
    def bound(self):
        \"\"\"Keeps the norm small.\"\"\"
        norm = clip_grad_norm_(self.net.parameters(), 1.0)
        return norm

    def learn(self, loss):
        self.opt.zero_grad()
        self.bound()
        loss.backward()
        self.opt.step()
"""
TWO = """for x in data:
    opt.zero_grad()
    clip_grad_norm_(net.parameters(), 1.0)
    second.zero_grad()
    net(x).mean().backward()
    opt.step()
    other(x).mean().backward()
    second.step()
"""
STAY = {
    "the norm is read before the backward": LOOP + CLIP.replace("clip", "norm = clip") + "    print(norm)\n" + BACKWARD + STEP,
    "the limit is made anew before the backward": LOOP + CLIP.replace("1.0", "limit") + "    limit = rule(loss)\n" + BACKWARD + STEP,
    "the backward and the step are elsewhere": HEAD + "def learn(loss):\n    loss.backward()\n    opt.step()\n\n" + LOOP + CLIP + "    learn(loss)\n",
    "of two networks it is not said which": TWO.replace("net.parameters()", "everything"),
    "no backward": LOOP + CLIP + STEP,
    "a clip stands there already": LOOP + CLIP + BACKWARD + CLIP + STEP,
}  # fmt: skip
MOVE = {
    "before the backward": (LOOP + CLIP + BACKWARD + STEP, LOOP + BACKWARD + CLIP + STEP),
    "behind the step": (LOOP + BACKWARD + STEP + CLIP, LOOP + BACKWARD + CLIP + STEP),
    "the norm is read behind the step": (
        LOOP + CLIP.replace("clip", "norm = clip") + BACKWARD + STEP + "    print(norm)\n",
        LOOP + BACKWARD + CLIP.replace("clip", "norm = clip") + STEP + "    print(norm)\n",
    ),
    "with its condition": (
        LOOP + "    if limit:\n    " + CLIP + BACKWARD + STEP,
        LOOP + BACKWARD + "    if limit:\n    " + CLIP + STEP,
    ),
    "several losses": (LOOP + CLIP + BACKWARD + "    extra.backward()\n" + STEP, LOOP + BACKWARD + "    extra.backward()\n" + CLIP + STEP),
    "behind what unscales": (
        LOOP + CLIP + "    scaler.scale(loss).backward()\n    scaler.unscale_(opt)\n    scaler.step(opt)\n",
        LOOP + "    scaler.scale(loss).backward()\n    scaler.unscale_(opt)\n" + CLIP + "    scaler.step(opt)\n",
    ),
    "with what unscales": (
        LOOP + CLIP + "    scaler.scale(loss).backward()\n    scaler.step(opt)\n",
        LOOP + "    scaler.scale(loss).backward()\n    scaler.unscale_(opt)\n" + CLIP + "    scaler.step(opt)\n",
    ),
    "a step under a condition": (
        LOOP + CLIP + BACKWARD + "    if ready:\n        check()\n    " + STEP,
        LOOP + BACKWARD + "    if ready:\n        check()\n    " + CLIP + "    " + STEP,
    ),
    "the backward of a helper": (
        "def back(loss):\n    loss.backward()\n\n" + LOOP + CLIP + "    back(loss)\n" + STEP,
        "def back(loss):\n    loss.backward()\n\n" + LOOP + "    back(loss)\n" + CLIP + STEP,
    ),
    "the call of a method": (HELPER, HELPER.replace("        self.bound()\n        loss.backward()\n", "        loss.backward()\n        self.bound()\n")),
    "of two networks": (TWO, TWO.replace(CLIP, "").replace("    opt.step()", CLIP + "    opt.step()")),
    "of the second network": (
        TWO.replace(CLIP, CLIP.replace("net", "other")),
        TWO.replace(CLIP, "").replace("    second.step()", CLIP.replace("net", "other") + "    second.step()"),
    ),
}  # fmt: skip


def mended(source: str, folder: pathlib.Path, *, is_fact: bool = False) -> str:
    """The program after the edit for the first clip of it."""
    line = line_of(source, "clip_grad_norm_(")
    place = f"train.py:{line}"
    log = LogLine(text=f"seen in the live program: {place} {CLIPS_EARLY}")
    incident = Incident(facts=(Fact(name=EARLY_CLIP, value=place),)) if is_fact else Incident(log=(log,))
    (one,) = find_codemod("clip_behind_backward")(
        Context(program=write(folder, {"train.py": source}), incident=incident)
    )
    assert one.culprit.line == line
    after = splice(source, one.edits)
    assert after is not None
    return after


@pytest.mark.parametrize("source", STAY.values(), ids=STAY)
def test_it_stays(source: str, tmp_path: pathlib.Path) -> None:
    """Only its line is told where it is not clear which step it is for, or what it reads and makes is in the way."""
    source = source if source.startswith(HEAD) else HEAD + source
    assert mended(source, tmp_path) == source


@pytest.mark.parametrize(("source", "after"), MOVE.values(), ids=MOVE)
def test_it_moves(source: str, after: str, tmp_path: pathlib.Path) -> None:
    """Behind the last backward before the step, and behind what takes a scaler's factor off."""
    assert mended(HEAD + source, tmp_path, is_fact=True) == HEAD + after


def test_nothing_moves_unseen(tmp_path: pathlib.Path) -> None:
    """The order in the text alone may be meant: a clip at the start of a round, of what was added up before."""
    program = write(tmp_path, {"train.py": HEAD + LOOP + CLIP + BACKWARD + STEP})
    assert list(find_codemod("clip_behind_backward")(Context(program=program, incident=failed()))) == []


def test_a_clip_that_finds_no_gradient(tmp_path: pathlib.Path) -> None:
    """`clip_grad_value_` fails where no parameter has one; nothing needs to have been seen."""
    source = HEAD + LOOP + CLIP.replace("clip_grad_norm_", "torch.nn.utils.clip_grad_value_") + BACKWARD + STEP
    message = "Expected !nested_tensorlist[0].empty() to be true, but got false."
    after = rewritten(tmp_path, "clip_behind_backward", source, "clip_grad_value_", message=message)
    assert diff_lines(source, after) == ["+    loss.backward()", "-    loss.backward()"]
