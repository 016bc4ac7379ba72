"""A hook that steps the schedule is called behind the one that steps the optimizer, where a list says their order."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Incident, WarningRecord
from explainer.source.program import read_program
from tests.fix.rewriting import line_of

WARNING = "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, ..."
REGISTRY = """import torch
HOOKS = {}
def hook(name):
    def add(fn):
        HOOKS[name] = fn
        return fn
    return add
@hook("optimize")
def optimize(state):
    state.optimizer.step()
    state.optimizer.zero_grad()
@hook("schedule")
def schedule(state):
    state.scheduler.step()
@hook("report")
def report(state):
    print(state.loss)
"""
COUNTED = REGISTRY.replace(
    "    state.optimizer.step()", "    if state.count % 4:\n        return\n    state.optimizer.step()"
).replace("def schedule(state):\n    state", "def schedule(it):\n    if it.count % 4:\n        return\n    it")
FACTORIES = """def advance(scheduler):
    def run(state):
        scheduler.step()
    return run
def update(optimizer):
    def run(state):
        optimizer.step()
    return run
"""
BY_CONFIG = """import yaml
import hooks
cfg = yaml.safe_load(open("config.yaml"))
for fn in [hooks.HOOKS[name] for name in cfg["hooks"]]:
    fn(state)
"""
CLASSES = """import torch
class Hook:
    def after_backward(self, trainer): ...
class LrHook(Hook):
    def after_backward(self, trainer):
        if trainer.count % 10 == 0:
            self._advance(trainer)
    def _advance(self, trainer):
        trainer.lr_scheduler.step()
class OptimizerHook(Hook):
    def __init__(self, clip=1.0):
        self.clip = clip
    def after_backward(self, trainer):
        torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), self.clip)
        if trainer.scaler is None:
            trainer.optimizer.step()
        else:
            trainer.scaler.step(trainer.optimizer)
class EmaHook(Hook):
    def after_backward(self, trainer):
        trainer.ema.update(trainer.model)
"""
LISTED = "from hooks import LrHook, OptimizerHook, EmaHook, advance, update, report\n"
FUNCTIONS = """def advance(state):
    state.sched.step()
def update(state):
    state.opt.step()
def report(state):
    print(state.loss)
"""
METHODS = """class Trainer:
    def schedule(self):
        self.lr_scheduler.step()
    def update(self):
        self.optimizer.step()
    def fit(self, cfg):
        for name in cfg["after_backward"]:
            getattr(self, name)()
"""
DECORATED = """AFTER = []
def after(fn):
    AFTER.append(fn)
    return fn
# The rate.
@after
def advance(state):
    state.scheduler.step()

# The weights.
@after
def update(state):
    state.optimizer.step()
"""
YAML = "lr: 0.1\n# in this order\nhooks:\n  - schedule\n  - optimize\n  - report\n"
Files = Mapping[str, str]
STAYS: dict[str, Files] = {
    "the optimizer's hook is first": {"train.py": BY_CONFIG, "hooks.py": REGISTRY, "config.yaml": YAML.replace("  - schedule\n  - optimize\n", "  - optimize\n  - schedule\n")},
    "a list of other things": {"train.py": BY_CONFIG, "hooks.py": REGISTRY, "config.yaml": "hooks: [report]\nlog: [schedule, loss]\n"},
    "the table of the hooks": {"train.py": "import hooks\n", "hooks.py": FUNCTIONS + "HOOKS = {'advance': advance, 'update': update}\n"},
    "the names that a module exports": {"train.py": "import hooks\n", "hooks.py": '__all__ = ["advance", "update"]\n' + FUNCTIONS},
    "a table made of a list": {"train.py": "import hooks\n", "hooks.py": FUNCTIONS + "HOOKS = {fn.__name__: fn for fn in (advance, update)}\n"},
    "a list that is asked": {"train.py": "import hooks\n", "hooks.py": FUNCTIONS + "print(report in [advance, update])\n"},
    "events of their own": {
        "train.py": LISTED + "hooks = [LrHook(), OptimizerHook()]\n",
        "hooks.py": CLASSES.replace("class OptimizerHook(Hook):", "class OptimizerHook(Hook):\n    def nothing(self): ...").replace(
            "    def after_backward(self, trainer):\n        torch", "    def after_step(self, trainer):\n        torch"
        ),
    },
    "a priority that all hooks inherit": {
        "train.py": LISTED + "hooks = [LrHook(), OptimizerHook()]\n",
        "hooks.py": CLASSES.replace("class Hook:", "class Hook:\n    priority = 1").replace("class OptimizerHook(Hook):", "class OptimizerHook(Hook):\n    priority = 2"),
    },
    "the same priority": {
        "train.py": LISTED + "trainer.register(LrHook(), priority=1)\ntrainer.register(OptimizerHook(), priority=1)\n",
        "hooks.py": CLASSES.replace("    def after_backward(self, trainer):\n        torch", "    def after_step(self, trainer):\n        torch"),
    },
    "several runners": {"train.py": LISTED + "warm.add(LrHook())\nmain.add(OptimizerHook())\n", "hooks.py": CLASSES},
    "an optimizer that steps with every fourth batch": {
        "train.py": BY_CONFIG,
        "hooks.py": REGISTRY.replace("    state.optimizer.step()", "    if state.count % 4:\n        return\n    state.optimizer.step()"),
        "config.yaml": YAML,
    },
    "an environment that steps": {"train.py": LISTED + "hooks = [advance, update]\n", "hooks.py": FUNCTIONS.replace("state.opt.step", "state.env.step")},
    "one hook that does both": {"train.py": LISTED + "hooks = [advance, update]\n", "hooks.py": FUNCTIONS.replace("    state.sched.step()", "    state.sched.step()\n    update(state)")},
    "comments between the hooks of one line": {"train.py": LISTED + "hooks = [advance,  # first\n         update]\n", "hooks.py": FUNCTIONS},
}  # fmt: skip
MOVES: dict[str, tuple[Files, str, str, str]] = {
    "a block of YAML": (
        {"train.py": BY_CONFIG, "hooks.py": REGISTRY, "config.yaml": YAML},
        "config.yaml",
        "  - schedule\n  - optimize\n",
        "  - optimize\n  - schedule\n",
    ),
    "two hooks under the same condition": (
        {"train.py": BY_CONFIG, "hooks.py": COUNTED, "config.yaml": YAML},
        "config.yaml",
        "  - schedule\n  - optimize\n",
        "  - optimize\n  - schedule\n",
    ),
    "one line of YAML, with what stands between": (
        {"train.py": BY_CONFIG, "hooks.py": REGISTRY, "config.yaml": "hooks: [schedule, report, optimize]  # in order\n"},
        "config.yaml",
        "schedule, report, optimize",
        "report, optimize, schedule",
    ),
    "mappings of YAML with their comments": (
        {
            "train.py": BY_CONFIG,
            "hooks.py": REGISTRY,
            "config.yaml": "hooks:\n  # rate\n  - name: schedule  # each\n    every: 1\n  # weights\n  - name: optimize\n    clip: 1.0",
        },
        "config.yaml",
        "  # rate\n  - name: schedule  # each\n    every: 1\n  # weights\n  - name: optimize\n    clip: 1.0",
        "  # weights\n  - name: optimize\n    clip: 1.0\n  # rate\n  - name: schedule  # each\n    every: 1",
    ),
    "a comment above the second of three": (
        {"train.py": BY_CONFIG, "hooks.py": REGISTRY, "config.yaml": "hooks:\n- report\n# the rate\n- schedule\n- optimize\n"},
        "config.yaml",
        "# the rate\n- schedule\n- optimize\n",
        "- optimize\n# the rate\n- schedule\n",
    ),
    "keys of YAML": (
        {"train.py": BY_CONFIG, "hooks.py": REGISTRY, "config.yaml": "train:\n  hooks:\n    schedule: {}\n    optimize: {clip: 1}\n"},
        "config.yaml",
        "    schedule: {}\n    optimize: {clip: 1}\n",
        "    optimize: {clip: 1}\n    schedule: {}\n",
    ),
    "JSON, with classes": (
        {
            "train.py": LISTED,
            "hooks.py": CLASSES,
            "config.json": '{"hooks": [\n  {"type": "hooks.LrHook"},\n  {"type": "hooks.OptimizerHook", "clip": 1},\n  {"type": "EmaHook"}]}\n',
        },
        "config.json",
        '  {"type": "hooks.LrHook"},\n  {"type": "hooks.OptimizerHook", "clip": 1},\n',
        '  {"type": "hooks.OptimizerHook", "clip": 1},\n  {"type": "hooks.LrHook"},\n',
    ),
    "JSON, the last of them": (
        {"train.py": LISTED, "hooks.py": CLASSES, "config.json": '{"hooks": [\n  {"type": "LrHook"},\n  {"type": "OptimizerHook"}\n]}\n'},
        "config.json",
        '  {"type": "LrHook"},\n  {"type": "OptimizerHook"}\n',
        '  {"type": "OptimizerHook"},\n  {"type": "LrHook"}\n',
    ),
    "TOML with comments": (
        {"train.py": BY_CONFIG, "hooks.py": REGISTRY, "config.toml": 'hooks = [\n  "schedule",  # rate\n  "optimize"  # weights\n]\n'},
        "config.toml",
        '  "schedule",  # rate\n  "optimize"  # weights\n',
        '  "optimize",  # weights\n  "schedule"  # rate\n',
    ),
    "methods that a file names": (
        {"train.py": "import hooks\n", "hooks.py": METHODS, "config.yaml": "after_backward: [schedule, update]\n"},
        "config.yaml",
        "schedule, update",
        "update, schedule",
    ),
    "a list of objects": (
        {"train.py": LISTED + "def build():\n    return [LrHook(), OptimizerHook(clip=2.0), EmaHook()]\n", "hooks.py": CLASSES},
        "train.py",
        "LrHook(), OptimizerHook(clip=2.0), ",
        "OptimizerHook(clip=2.0), LrHook(), ",
    ),
    "objects that have names": (
        {"train.py": LISTED + "lr, opt = LrHook(), OptimizerHook()\nTrainer(hooks=(lr, EmaHook(), opt)).fit()\n", "hooks.py": CLASSES},
        "train.py",
        "(lr, EmaHook(), opt)",
        "(EmaHook(), opt, lr)",
    ),
    "a list of specifications": (
        {"train.py": LISTED + 'HOOKS = [\n    dict(type="LrHook"),\n    dict(type="OptimizerHook", clip=1.0),\n]\n', "hooks.py": CLASSES},
        "train.py",
        '    dict(type="LrHook"),\n    dict(type="OptimizerHook", clip=1.0),\n',
        '    dict(type="OptimizerHook", clip=1.0),\n    dict(type="LrHook"),\n',
    ),
    "functions in a list of several lines": (
        {"train.py": LISTED + "for fn in [\n    advance,  # rate\n    update\n]:\n    fn(state)\n", "hooks.py": FUNCTIONS},
        "train.py",
        "    advance,  # rate\n    update\n",
        "    update,\n    advance  # rate\n",
    ),
    "what steps inside of what it calls": (
        {"train.py": LISTED + "for fn in (lambda: advance(state), lambda: update(state)):\n    fn()\n", "hooks.py": FUNCTIONS},
        "train.py",
        "lambda: advance(state), lambda: update(state)",
        "lambda: update(state), lambda: advance(state)",
    ),
    "a dictionary that a loop goes through": (
        {"train.py": LISTED + "HOOKS = {'lr': advance, 'opt': update}\nfor fn in HOOKS.values():\n    fn(state)\n", "hooks.py": FUNCTIONS},
        "train.py",
        "'lr': advance, 'opt': update",
        "'opt': update, 'lr': advance",
    ),
    "calls that register": (
        {"train.py": LISTED + "# hooks\nloop.add_hook(LrHook())\nloop.add_hook(EmaHook())\nloop.add_hook(OptimizerHook(2.0))\nloop.run()\n", "hooks.py": CLASSES},
        "train.py",
        "loop.add_hook(LrHook())\nloop.add_hook(EmaHook())\nloop.add_hook(OptimizerHook(2.0))\n",
        "loop.add_hook(EmaHook())\nloop.add_hook(OptimizerHook(2.0))\nloop.add_hook(LrHook())\n",
    ),
    "calls that register for one event": (
        {"train.py": LISTED + "loop.on('backward', advance); loop.on('backward', update)\n", "hooks.py": FUNCTIONS},
        "train.py",
        "loop.on('backward', advance); loop.on('backward', update)",
        "loop.on('backward', update); loop.on('backward', advance)",
    ),
    "priorities of classes": (
        {
            "train.py": LISTED + "hooks = [LrHook(), OptimizerHook()]\n",
            "hooks.py": CLASSES.replace("class LrHook(Hook):", "class LrHook(Hook):\n    priority = 1").replace(
                "class OptimizerHook(Hook):", "class OptimizerHook(Hook):\n    priority = 20"
            ),
        },
        "hooks.py",
        "priority = 1\n",
        "priority = 21\n",
    ),
    "the optimizer's priority of all hooks, the larger first": (
        {
            "train.py": LISTED + "hooks = [OptimizerHook(), LrHook()]\n",
            "hooks.py": CLASSES.replace("class Hook:", "class Hook:\n    priority = 50").replace(
                "class LrHook(Hook):", "class LrHook(Hook):\n    priority = 60"
            ),
        },
        "hooks.py",
        "priority = 60\n",
        "priority = 49\n",
    ),
    "priorities where they are registered": (
        {
            "train.py": LISTED + "trainer.register(LrHook(), priority=1)\ntrainer.register(OptimizerHook(), priority=2)\n"
            "trainer.register(EmaHook(), priority=3)\n",
            "hooks.py": CLASSES,
        },
        "train.py",
        "LrHook(), priority=1",
        "LrHook(), priority=2.5",
    ),
    "priorities in a file": (
        {
            "train.py": BY_CONFIG,
            "hooks.py": REGISTRY,
            "config.yaml": "hooks:\n  - {name: schedule, priority: 1}\n  - {name: optimize, priority: 9}\n",
        },
        "config.yaml",
        "schedule, priority: 1",
        "schedule, priority: 10",
    ),
    "functions that a decorator keeps": (
        {"train.py": LISTED, "hooks.py": DECORATED},
        "hooks.py",
        "# The rate.\n@after\ndef advance(state):\n    state.scheduler.step()\n\n# The weights.\n@after\ndef update(state):\n    state.optimizer.step()\n",
        "# The weights.\n@after\ndef update(state):\n    state.optimizer.step()\n\n# The rate.\n@after\ndef advance(state):\n    state.scheduler.step()\n",
    ),
    "a factory of hooks": (
        {"train.py": LISTED + "hooks = [advance(scheduler), update(optimizer)]\n", "hooks.py": FACTORIES},
        "train.py",
        "advance(scheduler), update(optimizer)",
        "update(optimizer), advance(scheduler)",
    ),
}  # fmt: skip


def mended(folder: pathlib.Path, files: Files, message: str = WARNING) -> dict[str, str]:
    """The files after the best edit for a warning at the scheduler's step."""
    for name, text in files.items():
        (folder / name).write_text(text)
    hooks = files["hooks.py"]
    words = next(word for word in ("lr_scheduler.step", "scheduler.step", "sched.step") if word in hooks)
    warning = WarningRecord(category="UserWarning", message=message, file="hooks.py", line=line_of(hooks, words))
    program = read_program(str(folder), ["train.py", "hooks.py"])
    found = list(
        find_codemod("schedule_behind_in_list")(Context(program=program, incident=Incident(warnings=(warning,))))
    )
    best = max(found, key=lambda one: one.belief, default=None)
    after = dict(files)
    for edit in best.edits if best is not None else ():
        name = pathlib.Path(edit.file).name
        after[name] = splice(files[name], [edit]) or ""
    return after


@pytest.mark.parametrize("files", STAYS.values(), ids=STAYS)
def test_what_may_be_meant_stays(files: Files, tmp_path: pathlib.Path) -> None:
    """No edit where a list is none of hooks, where something else says their order, or where it would not help."""
    assert mended(tmp_path, files) == files


@pytest.mark.parametrize(("files", "name", "before", "after"), MOVES.values(), ids=MOVES)
def test_the_hook_goes_behind(files: Files, name: str, before: str, after: str, tmp_path: pathlib.Path) -> None:
    """The schedule's entry goes right behind the optimizer's, with its comments; nothing else changes."""
    assert before in files[name]
    assert mended(tmp_path, files) == {**files, name: files[name].replace(before, after)}


def test_what_no_warning_names_stays(tmp_path: pathlib.Path) -> None:
    """A schedule may be stepped first: whether it was is the run's to say."""
    files = MOVES["a block of YAML"][0]
    assert mended(tmp_path, files, "something else") == files
