"""A model that learns and one that is frozen, made of the same parameters."""

from __future__ import annotations

import linecache

import pytest

pytestmark = pytest.mark.torch

PROGRAM = """import copy
import torch
from torch import nn


class Pair(nn.Module):
    def __init__(self, online):
        super().__init__()
        self.online, self.target = online, online


def net():
    return nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2), nn.Tanh())


def main():
    {made}
    {trained}.backward()


main()
"""
FREEZE = "teacher.requires_grad_(False)"
STEP = "opt = torch.optim.SGD(student.parameters(), lr=0.1)"
LOSS = "student(torch.ones(3, 2)).sum()"
SHARED = {
    "every second layer": (f"teacher = net(); student = teacher[:2]; {FREEZE}; {STEP}", LOSS, "student and teacher"),
    "the children": (f"teacher = net(); student = nn.Sequential(*teacher.children()); {FREEZE}; {STEP}", LOSS, "student and teacher"),
    "one object": ("model = net(); ema = model; ema.requires_grad_(False); opt = torch.optim.SGD(model.parameters(), lr=0.1)",
                   "model(torch.ones(3, 2)).sum()", "model and ema"),
    "parts of a module": ("pair = Pair(net()); pair.target.requires_grad_(False); opt = torch.optim.SGD(pair.online.parameters(), lr=0.1)",
                          "pair.online(torch.ones(3, 2)).sum()", "online and target"),
}  # fmt: skip
APART = {
    "frozen copies": (f"teacher = net(); student = copy.deepcopy(teacher[:2]); student.requires_grad_(False); {STEP}", LOSS),
    "a backbone of a model": (
        "model = net(); backbone = model[:2]; model.requires_grad_(False); opt = torch.optim.SGD(backbone.parameters(), lr=0.1)",
        "model(torch.ones(3, 2)).sum()",
    ),
    "a part of it": (f"teacher = nn.Sequential(net()); student = teacher[0]; {FREEZE}; {STEP}", LOSS),
    "no optimizer has it": (f"teacher = net(); student = teacher[:2]; {FREEZE}", LOSS),
    "something of it trains": (f"teacher = net(); student = teacher[:3]; teacher[0].requires_grad_(False); {STEP}", LOSS + ".detach()"),
    "tied weights": (
        "student = net(); student[2].weight = nn.Parameter(student[0].weight.T.clone()); student.requires_grad_(False); " + STEP, LOSS),
}  # fmt: skip


def seen(path, made: str, trained: str) -> str | None:
    """What the live objects say where the program fails."""
    pytest.importorskip("torch")
    from explainer.live.crash import look
    from explainer.verification.live_report import facts_of

    source = PROGRAM.format(made=made, trained=trained)
    path.write_text(source)
    linecache.checkcache()
    with pytest.raises(RuntimeError, match="does not require grad") as failed:
        exec(compile(source, str(path), "exec"), {"__name__": "program"})  # noqa: S102 - the program of a test
    return dict(facts_of(look(failed.value))).get("live_shared_modules")


@pytest.mark.parametrize(("made", "trained"), APART.values(), ids=APART)
def test_what_shares_nothing_that_is_meant_apart(tmp_path, made: str, trained: str) -> None:
    """Copies, parts by their own right, what nothing steps."""
    assert seen(tmp_path / "train.py", made, trained) is None


@pytest.mark.parametrize(("made", "trained", "pair"), SHARED.values(), ids=SHARED)
def test_what_is_made_of_the_frozen_model(tmp_path, made: str, trained: str, pair: str) -> None:
    """By the names of both."""
    assert seen(tmp_path / "train.py", made, trained) == pair
