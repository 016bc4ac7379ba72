"""The scheduler is stepped after the optimizer, and as often."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.StepLR(opt, 1)
for epoch in range(2):
    for step in range(4):
        net(torch.randn(8, 4)).sum().backward()
"""
CALLED = """import torch
from torch import nn
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.StepLR(opt, 1)
def fit(opt):
    for step in range(4):
        net(torch.randn(8, 4)).sum().backward()
        opt.step()
"""
RIGHT = {
    "after the optimizer": (HEAD + "        opt.step()\n        sched.step()\n", "", {}),
    "once an epoch": (HEAD + "        opt.step()\n    sched.step()\n", "", {}),
    "both under a condition": (
        HEAD + "        if step % 2:\n            opt.step()\n            sched.step()\n",
        "",
        {},
    ),
    "at the end of an epoch that a function runs": (
        CALLED + "for epoch in range(2):\n    fit(opt)\n    sched.step()\n",
        "",
        {},
    ),
    "at the beginning, with a way past the end": (
        CALLED
        + "for epoch in range(2):\n    sched.step()\n    fit(opt)\n    if epoch:\n        continue\n    print(epoch)\n",
        "",
        {},
    ),
    "before all epochs": (CALLED + "sched.step()\nfor epoch in range(2):\n    fit(opt)\n", "", {}),
    "no optimizer": (HEAD + "        sched.step()\n", "", {}),
}
WRONG = {
    "before the optimizer": (HEAD + "        sched.step()\n        opt.step()\n", "", {}, []),
    "with every batch": (
        HEAD + "        if step % 2:\n            opt.step()\n        sched.step()\n",
        "",
        {},
        ["sched.step()"],
    ),
    "before, with a statement between": (
        HEAD + "        sched.step()\n        rate = 1\n        opt.step()\n",
        "",
        {},
        [],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """A scheduler after the optimizer, once an epoch, or of no optimizer in sight, is left alone."""
    assert rewritten(tmp_path, "step_scheduler_after_optimizer", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The step of the scheduler moves, and nothing else; a second time nothing is left to do."""
    after = rewritten(tmp_path, "step_scheduler_after_optimizer", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert (
        rewritten(tmp_path, "step_scheduler_after_optimizer", after, None if at not in after else at or None, **given)
        == after
    )


EPOCHS = {
    "a function": (CALLED, "    fit(opt)\n    print(epoch)\n"),
    "a loop": (
        CALLED,
        "    for step in range(4):\n        net(torch.randn(8, 4)).sum().backward()\n        opt.step()\n",
    ),
}


@pytest.mark.parametrize(("head", "body"), EPOCHS.values(), ids=EPOCHS)
def test_an_epoch_that_begins_with_it_ends_with_it(tmp_path, head: str, body: str) -> None:
    """What the epoch prints of the rate is what it used."""
    source = head + "for epoch in range(2):\n    sched.step()\n" + body
    after = rewritten(tmp_path, "step_scheduler_after_optimizer", source)
    assert after == head + "for epoch in range(2):\n" + body + "    sched.step()\n"
    assert rewritten(tmp_path, "step_scheduler_after_optimizer", after) == after
