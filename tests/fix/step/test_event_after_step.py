"""The callback whose write a trace saw listens to the event behind the step."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Incident
from explainer.model.trace import WRITE, TracedLine
from tests.fix.rewriting import diff_lines, failed, line_of, write

LOOP = """import torch
class Trainer:
    def fire(self, event):
        for callback in self.callbacks:
            if callback.event == event:
                callback(self)
    def fit(self, loader):
        for x, y in loader:
            self.fire("start")
            self.opt.zero_grad()
            self.loss = self.criterion(self.model(x), y)
            self.fire("loss")
            self.loss.backward()
            self.opt.step()
            self.fire("stepped")
"""
NAMED = """import torch
class Trainer:
    def fit(self, loader):
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            for callback in self.callbacks:
                callback.on_loss(self)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            for callback in self.callbacks:
                callback.on_step(self)
"""
SWAP = """import torch
class Average(Callback):
    def swap(self, net):
        with torch.no_grad():
            net.weight.clamp_(-1, 1)
class Validation(Callback):
    def __init__(self, average):
        self.average = average
    def on_loss(self, trainer):
        self.average.swap(trainer.model)
        print(trainer.model)
        self.average.swap(trainer.model)
class Log(Callback):
    def on_loss(self, trainer):
        print(trainer)
"""
MADE = "hooks = [Validation(Average()), Log()]\n"
CLASS = """import torch
class Ball(Callback):
    def __call__(self, trainer):
        with torch.no_grad():
            trainer.model.weight.clamp_(-1, 1)
"""
METHOD = """import torch
class Ball(Callback):
    def on_loss(self, trainer):
        with torch.no_grad():
            trainer.model.weight.clamp_(-1, 1)
"""
TABLE = 'CALLBACKS = {"ball": Ball, "log": Log}\n'
LATE = LOOP.replace('            self.fire("loss")\n', "").replace('.fire("stepped")', '.fire("loss")')
GIVEN = """import torch
class Callback:
    def on_loss(self, trainer, loss):
        pass
    def on_step(self, trainer):
        pass
class Trainer:
    def fire(self, event, *args):
        for callback in self.callbacks:
            getattr(callback, event)(self, *args)
    def fit(self, loader):
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            self.fire("on_loss", loss)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.fire("on_step")
"""
RIGHT = {
    "what the later event does not give is read": {
        "train.py": GIVEN,
        "ball.py": METHOD.replace("(self, trainer)", "(self, trainer, loss)").replace("(-1, 1)", "(-loss, loss)"),
    },
    "the event is behind the backward already": {"train.py": LATE, "ball.py": CLASS, "run.py": 'Ball(event="loss")\n'},
    "no event behind the step": {
        "train.py": LOOP.replace('            self.fire("stepped")\n', ""),
        "ball.py": CLASS,
        "run.py": 'Ball(event="loss")\n',
    },
    "the event of another callback": {"train.py": LOOP, "ball.py": CLASS, "run.py": 'Log(event="loss")\nBall()\n'},
    "another callback's entry": {"train.py": LOOP, "ball.py": CLASS + TABLE, "config.yaml": "- name: log\n  event: loss\n"},
    "a list of all events": {"train.py": LOOP, "ball.py": CLASS + '    events = ("loss", "stepped")\n'},
    "a call within a call": {"train.py": LOOP, "ball.py": CLASS, "run.py": 'add(Ball(), Log(event="loss"))\n'},
    "one call for two callbacks": {"train.py": LOOP, "ball.py": CLASS, "run.py": 'trainer.on("loss", [Ball(), Log()])\n'},
    "both methods are there": {"train.py": NAMED, "ball.py": METHOD + "    def on_step(self, trainer):\n        print(trainer)\n"},
    "a method that its class calls too": {
        "train.py": NAMED,
        "ball.py": METHOD + "    def reset(self, trainer):\n        self.on_loss(trainer)\n",
    },
    "a callback that its base does the work for": {
        "train.py": NAMED,
        "ball.py": SWAP + MADE.replace("Validation", "Checked")
        + "class Checked(Validation):\n    def on_loss(self, trainer):\n        super().on_loss(trainer)\n",
        "run.py": "",
    },
    "a method of another name": {"train.py": NAMED, "ball.py": METHOD.replace("on_loss", "on_start")},
}  # fmt: skip
BASE = """import torch
class Callback:
    event = "loss"
class Ball(Callback):
    def __call__(self, trainer):
        with torch.no_grad():
            trainer.model.weight.clamp_(-1, 1)
"""
WRONG = {
    "an event of the base class": (
        {"train.py": LOOP, "ball.py": BASE + TABLE.replace("log\": Log", "log\": Callback")},
        "ball.py",
        ['+    event = "stepped"', "+"],
    ),
    "a loss that is kept on another object": (
        {"train.py": LOOP.replace("self.loss", "state.loss"), "ball.py": CLASS + TABLE, "config.yaml": "- name: ball\n  event: loss\n"},
        "config.yaml",
        ["-  event: loss", "+  event: stepped"],
    ),
    "an entry of YAML": (
        {"train.py": LOOP, "ball.py": CLASS + TABLE, "config.yaml": "- name: log\n  event: loss\n- name: ball\n  event: loss  # each\n"},
        "config.yaml",
        ["-  event: loss  # each", "+  event: stepped  # each"],
    ),
    "a class by its path": (
        {"train.py": LOOP, "ball.py": CLASS, "config.yaml": "ball:\n  _target_: ball.Ball\n  event: loss\n"},
        "config.yaml",
        ["-  event: loss", "+  event: stepped"],
    ),
    "a key of JSON": (
        {"train.py": LOOP, "ball.py": CLASS + TABLE, "config.json": '{"callbacks": {"ball": {"event": "loss"}}}\n'},
        "config.json",
        ['-{"callbacks": {"ball": {"event": "loss"}}}', '+{"callbacks": {"ball": {"event": "stepped"}}}'],
    ),
    "callbacks by event": (
        {"train.py": LOOP, "ball.py": CLASS + TABLE, "config.yaml": "loss: [ball]\n"},
        "config.yaml",
        ["-loss: [ball]", "+stepped: [ball]"],
    ),
    "a registered class": (
        {"train.py": LOOP, "ball.py": CLASS.replace("class", '@register("ball")\nclass'), "config.yaml": "kind: ball\nevent: loss\n"},
        "config.yaml",
        ["-event: loss", "+event: stepped"],
    ),
    "an argument of the constructor": (
        {"train.py": LOOP, "ball.py": CLASS, "run.py": "callbacks = [Log(event='loss'), Ball(event='loss')]\n"},
        "run.py",
        ["-callbacks = [Log(event='loss'), Ball(event='loss')]", "+callbacks = [Log(event='loss'), Ball(event='stepped')]"],
    ),
    "a registration": (
        {"train.py": LOOP, "ball.py": CLASS, "run.py": 'trainer.on("loss", Ball())\n'},
        "run.py",
        ['-trainer.on("loss", Ball())', '+trainer.on("stepped", Ball())'],
    ),
    "an attribute of the class": (
        {"train.py": LOOP, "ball.py": CLASS.replace("    def", '    event = "loss"\n    def')},
        "ball.py",
        ['-    event = "loss"', '+    event = "stepped"'],
    ),
    "a decorated function": (
        {"train.py": LOOP, "ball.py": 'import torch\n@on("loss")\n@torch.no_grad()\ndef ball(trainer):\n    trainer.model.weight.clamp_(-1, 1)\n'},
        "ball.py",
        ['-@on("loss")', '+@on("stepped")'],
    ),
    "a method that lets another object write": (
        {"train.py": NAMED, "ball.py": SWAP + MADE},
        "ball.py",
        ["-    def on_loss(self, trainer):", "+    def on_step(self, trainer):"],
    ),
    "a method": (
        {"train.py": NAMED, "ball.py": METHOD},
        "ball.py",
        ["-    def on_loss(self, trainer):", "+    def on_step(self, trainer):"],
    ),
    "a later event that is given less": (
        {"train.py": GIVEN, "ball.py": METHOD.replace("(self, trainer)", "(self, trainer, loss)")},
        "ball.py",
        ["-    def on_loss(self, trainer, loss):", "+    def on_step(self, trainer):"],
    ),
}  # fmt: skip


def mended(folder: pathlib.Path, files: Mapping[str, str]) -> dict[str, str]:
    """The files that the best edit changes, by name; it is unsafe always."""
    sources = {name: text for name, text in files.items() if name.endswith(".py")}
    for name in files.keys() - sources.keys():
        (folder / name).write_text(files[name])
    program = write(folder, sources)
    traced = TracedLine(kind=WRITE, operation="clamp_", file="ball.py", line=line_of(files["ball.py"], "clamp_"))
    incident = Incident(exceptions=failed().exceptions, traced=(traced,))
    found = list(find_codemod("event_after_step")(Context(program=program, incident=incident)))
    assert {one.applicability for one in found} <= {"unsafe"}
    best = max(found, key=lambda one: one.belief, default=None)
    texts = program.editable(edit.file for edit in best.edits) if best else {}
    edits = best.edits if best else ()
    return {
        pathlib.Path(path).name: splice(texts[path].text, [edit for edit in edits if edit.file == path]) or ""
        for path in dict.fromkeys(edit.file for edit in edits)
    }


@pytest.mark.parametrize("files", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(files: Mapping[str, str], tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where no event is behind the step, or where the word belongs to somebody else."""
    assert mended(tmp_path, files) == {}


@pytest.mark.parametrize(("files", "name", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(
    files: Mapping[str, str], name: str, changes: list[str], tmp_path: pathlib.Path
) -> None:
    """The event is changed where the callback gets it."""
    after = mended(tmp_path, files)
    assert list(after) == [name]
    assert diff_lines(files[name], after[name]) == changes


def test_what_no_trace_saw_stays(tmp_path: pathlib.Path) -> None:
    """Which callback wrote cannot be read from the source alone."""
    files = {"train.py": LOOP, "ball.py": CLASS, "run.py": 'trainer.on("loss", Ball())\n'}
    program = write(tmp_path, files)
    assert list(find_codemod("event_after_step")(Context(program=program, incident=failed()))) == []
