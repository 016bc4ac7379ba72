"""A callback that steps the schedule too early listens to the event behind the optimizer's step."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Incident, WarningRecord
from tests.fix.rewriting import diff_lines, line_of, write

WARNING = "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, ..."
LOOP = """import torch
class Loop:
    def emit(self, event):
        for hook in self.hooks:
            getattr(hook, event)(self)
    def step(self, x, y):
        self.emit("on_start")
        loss = self.criterion(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.emit("on_end")
    def run(self):
        self.emit("on_fit")
        for epoch in range(3):
            self.emit("on_epoch")
            for x, y in self.loader:
                self.step(x, y)
            self.emit("after_epoch")
        self.emit("after_fit")
"""
NAMED = """import torch
for epoch in range(3):
    for x, y in loader:
        for hook in hooks:
            hook.on_start(x)
        model(x).sum().backward()
        if scaler is not None:
            scaler.step(optimizer)
        else:
            optimizer.step()
        for hook in hooks:
            hook.on_end(x, y)
"""
NESTED = """import torch
class Loop:
    def emit(self, event):
        for hook in self.hooks:
            getattr(hook, event)(self)
    def fit(self, loader, epochs):
        for self.epoch in range(epochs):
            for x, y in loader:
                self.emit("on_start")
                loss = self.criterion(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.emit("on_end")
"""
BASE = """from torch.optim.lr_scheduler import StepLR
class Hook:
    def on_start(self, loop): ...
    def on_end(self, loop): ...
    def on_fit(self, loop):
        pass
"""
SCHEDULE = (
    BASE
    + """class Schedule(Hook):
    def __init__(self, optimizer, by_batch):
        self.by_batch = by_batch
        self.scheduler = StepLR(optimizer, 1)
    def on_start(self, loop):
        self.scheduler.step()
"""
)
COUNTED = SCHEDULE.replace(
    "        self.scheduler.step()", "        if loop.count % 2 == 0:\n            self.scheduler.step()"
)
CALLED = """from torch.optim.lr_scheduler import StepLR
class Schedule:
    def __init__(self, optimizer):
        self.scheduler = StepLR(optimizer, 1)
    def __call__(self, loop):
        self.scheduler.step()
"""
ACCUMULATED = LOOP.replace(
    "        self.optimizer.step()", "        if self.count % 4 == 0:\n            self.optimizer.step()"
)
RIGHT = {
    "the event is behind the step": (LOOP.replace('"on_start"', '"x"').replace('"on_end"', '"on_start"'), SCHEDULE),
    "no event behind the step": (LOOP.replace('        self.emit("on_end")\n', ""), SCHEDULE),
    "a step of every fourth batch": (ACCUMULATED, SCHEDULE),
    "a condition that counts": (LOOP, COUNTED),
    "once before all epochs": (LOOP, SCHEDULE.replace("on_start(self, loop):\n        self", "on_fit(self, loop):\n        self")),
    "told its epoch": (LOOP, SCHEDULE.replace(".step()", ".step(loop.epoch)")),
    "in each of several folds, before all epochs": (
        LOOP + "for fold in folds:\n    Loop(fold).run()\n",
        SCHEDULE.replace("on_start(self, loop):\n        self", "on_fit(self, loop):\n        self"),
    ),
    "caught up in a loop": (LOOP, SCHEDULE.replace("        self.scheduler.step()", "        for _ in range(3):\n            self.scheduler.step()")),
    "a base that does something at the later event": (LOOP, SCHEDULE.replace("on_end(self, loop): ...", "on_end(self, loop): print(loop)")),
    "called by its class too": (LOOP, SCHEDULE + "    def reset(self):\n        self.on_start(None)\n"),
    "a later method that may leave early": (
        LOOP,
        SCHEDULE + "    def on_end(self, loop):\n        if loop.done:\n            return\n        print(loop)\n",
    ),
}  # fmt: skip
WRONG = {
    "a method": (LOOP, SCHEDULE, ["-    def on_start(self, loop):", "+    def on_end(self, loop):"]),
    "a step in the loops themselves": (
        NESTED,
        SCHEDULE,
        ["-    def on_start(self, loop):", "+    def on_end(self, loop):"],
    ),
    "in an epoch": (
        LOOP,
        SCHEDULE.replace("on_start(self, loop)", "on_epoch(self, loop)").replace("on_end(", "after_epoch("),
        ["-    def on_epoch(self, loop):", "+    def after_epoch(self, loop):"],
    ),
    "under a choice of the constructor": (
        LOOP,
        SCHEDULE.replace("        self.scheduler.step()", "        if self.by_batch:\n            self.scheduler.step()"),
        ["-    def on_start(self, loop):", "+    def on_end(self, loop):"],
    ),
    "beside something else": (
        LOOP,
        SCHEDULE.replace("        self.scheduler.step()", "        print(loop)\n        self.scheduler.step()"),
        ["+", "+    def on_end(self, loop):"],
    ),
    "a class that has the later method": (
        LOOP,
        SCHEDULE + "    def on_end(self, loop):\n        print(loop)\n",
        ["-        self.scheduler.step()", "+        pass", "+        self.scheduler.step()"],
    ),
    "an event in the name of a method": (
        LOOP.replace('"on_', '"').replace("getattr(hook, event)", 'getattr(hook, f"on_{event}")'),
        SCHEDULE,
        ["-    def on_start(self, loop):", "+    def on_end(self, loop):"],
    ),
    "other arguments": (
        NAMED,
        SCHEDULE.replace("on_start(self, loop)", "on_start(self, x)").replace("on_end(self, loop)", "on_end(self, x, y)"),
        ["-    def on_start(self, x):", "+    def on_end(self, x, y):"],
    ),
    "a registration": (
        LOOP,
        CALLED + 'loop.on("on_start", Schedule(optimizer))\n',
        ['-loop.on("on_start", Schedule(optimizer))', '+loop.on("on_end", Schedule(optimizer))'],
    ),
    "a decorated function": (
        LOOP,
        'from torch.optim.lr_scheduler import StepLR\nscheduler = StepLR(optimizer, 1)\n@on("on_start")\ndef adjust(loop):\n    scheduler.step()\n',
        ['-@on("on_start")', '+@on("on_end")'],
    ),
}  # fmt: skip


def mended(folder: pathlib.Path, loop: str, hooks: str, message: str = WARNING) -> str:
    """The hooks after the best edit for a warning at the scheduler's step."""
    program = write(folder, {"loop.py": loop, "hooks.py": hooks})
    warning = WarningRecord(category="UserWarning", message=message, file="hooks.py", line=line_of(hooks, ".step("))
    context = Context(program=program, incident=Incident(warnings=(warning,)))
    found = list(find_codemod("schedule_at_later_event")(context))
    best = max(found, key=lambda one: one.belief, default=None)
    return (splice(hooks, best.edits) or "") if best else hooks


@pytest.mark.parametrize(("loop", "hooks"), RIGHT.values(), ids=RIGHT)
def test_what_may_be_meant_stays(loop: str, hooks: str, tmp_path: pathlib.Path) -> None:
    """No edit where no event follows the step, where the optimizer steps less often, or where the callback counts."""
    assert mended(tmp_path, loop, hooks) == hooks


@pytest.mark.parametrize(("loop", "hooks", "changes"), WRONG.values(), ids=WRONG)
def test_the_schedule_steps_later(loop: str, hooks: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """Its method, or the word that tells it the event, is changed; what else the callback does stays where it is."""
    after = mended(tmp_path, loop, hooks)
    assert diff_lines(hooks, after) == changes
    compile(after, "hooks.py", "exec")


def test_what_no_warning_names_stays(tmp_path: pathlib.Path) -> None:
    """A schedule may be stepped first: whether it was is the run's to say."""
    assert mended(tmp_path, LOOP, SCHEDULE, "something else") == SCHEDULE
