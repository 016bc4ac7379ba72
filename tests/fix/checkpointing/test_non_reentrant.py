"""Checkpointing becomes non-reentrant where it is chosen, unless the segment writes in place."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Frame, Incident
from tests.fix.rewriting import best, changed_lines, failed, rewritten, write

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


NET = """import json
import yaml
from dataclasses import dataclass
from types import SimpleNamespace
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width, save_memory, reentrant, cfg=None):
        super().__init__()
        self.body = nn.Linear(width, width)
        BINDS

    def forward(self, h):
        for _ in range(2):
            CALL
        return h


"""
SPREAD = 'cfg = json.load(open("config.json"))\nnet = Block(**cfg["net"])\n'
CONFIG = '{"net": {"width": 4, "save_memory": true,\n"reentrant": true}}\n'
TWO = "self.save_memory, self.reentrant = save_memory, reentrant"
ASKED = "h = checkpoint(self.body, h, use_reentrant=self.reentrant)"


def block(binds: str, call: str, make: str, **files: str) -> dict[str, str]:
    """A module that checkpoints its layer, with the lines that bind its form, that run it and that make it."""
    text = NET.replace("BINDS", binds).replace("CALL", call) + make
    return {"train.py": text} | {name.replace("_", "."): one for name, one in files.items()}


OPTIONS = "h = checkpoint(self.body, h, **self.options)"
LIST = 'self.options = cfg["checkpoint"]'
WRITTEN = {
    "one of two names that are bound together": (block(TWO, ASKED, SPREAD, config_json=CONFIG), "config.json", '"reentrant": false}}'),
    "a name that says its type": (
        block("self.reentrant: bool = reentrant", ASKED, SPREAD, config_json=CONFIG), "config.json", '"reentrant": false}}',
    ),
    "a section of YAML that is kept": (
        block("self.cfg = cfg", "h = checkpoint(self.body, h, use_reentrant=self.cfg.use_reentrant)",
              'run = yaml.safe_load(open("run.yaml"))\nnet = Block(4, True, True, SimpleNamespace(**run["net"]))\n',
              run_yaml="net:\n  use_reentrant: true\n  width: 4\n"),
        "run.yaml", "use_reentrant: false",
    ),
    "a field of a dataclass": (
        block("self.cfg = cfg", "h = checkpoint(self.body, h, use_reentrant=self.cfg.reentrant)",
              "@dataclass\nclass Run:\n    width: int = 4\n    reentrant: bool = True\n\n\nnet = Block(4, True, True, Run())\n"),
        "train.py", "reentrant: bool = True".replace("True", "False"),
    ),
    "options of a file": (
        block(LIST, OPTIONS, 'run = yaml.safe_load(open("run.yaml"))\nnet = Block(4, True, True, run)\n',
              run_yaml="checkpoint:\n  preserve_rng_state: false\n  use_reentrant: true\n"),
        "run.yaml", "use_reentrant: false",
    ),
    "options of a dictionary": (
        block(LIST, OPTIONS, 'net = Block(4, True, True, {"checkpoint": {"use_reentrant": True}})\n'),
        "train.py", 'net = Block(4, True, True, {"checkpoint": {"use_reentrant": False}})',
    ),
    "a setting that switches more": (
        block(TWO, "h = checkpoint(self.body, h, use_reentrant=self.save_memory) if self.save_memory else self.body(h)", SPREAD, config_json=CONFIG),
        "train.py", "h = checkpoint(self.body, h, use_reentrant=False) if self.save_memory else self.body(h)",
    ),
}  # fmt: skip
OTHERS = {
    "a form that is right": block(TWO, ASKED, SPREAD, config_json=CONFIG.replace('"reentrant": true', '"reentrant": false')),
    "the other of two names": block(TWO, ASKED, SPREAD, config_json='{"net": {"width": 4, "save_memory": true, "reentrant": false}}\n'),
    "options that are right": block(LIST, OPTIONS, 'net = Block(4, True, True, {"checkpoint": {"use_reentrant": False}})\n'),
    "options without the form": block(LIST, OPTIONS, 'net = Block(4, True, True, {"checkpoint": {"debug": False}})\n'),
    "options that are not known": block("self.options = cfg", OPTIONS, ""),
    "a form that only a run tells": block(TWO, "h = checkpoint(self.body, h, use_reentrant=len(h) > 2)", SPREAD, config_json=CONFIG),
}  # fmt: skip


def cured(tmp_path, files: dict[str, str], incident: Incident | None = None) -> tuple[str, list[str]] | None:
    """The file that changes, with its new lines."""
    found = best("non_reentrant", write(tmp_path, files), incident=incident or failed())
    if found is None:
        return None
    name = pathlib.Path(found.edits[0].file).name
    after = splice(files[name], found.edits)
    assert after is not None
    return name, changed_lines(files[name], after)


@pytest.mark.parametrize("files", OTHERS.values(), ids=OTHERS)
def test_forms_that_are_right_or_not_known_stay(tmp_path, files: dict[str, str]) -> None:
    """A file that says `false`, options without the form, a form that is computed."""
    assert cured(tmp_path, files) is None


@pytest.mark.parametrize(("files", "name", "line"), WRITTEN.values(), ids=WRITTEN)
def test_the_form_changes_where_it_is_written(tmp_path, files: dict[str, str], name: str, line: str) -> None:
    """In a file, a dataclass or a dictionary that a module was made of; in the call where the setting means more than the form."""
    assert cured(tmp_path, files) == (name, [line])


def test_a_form_that_the_traceback_proves(tmp_path) -> None:
    """Where a backward of the reentrant form failed, a form that is computed is replaced in the call; else it stays."""
    files = block(TWO, "h = checkpoint(self.body, h, use_reentrant=len(h) > 2)", SPREAD, config_json=CONFIG)
    frame = Frame(file="/x/torch/utils/checkpoint.py", line=331, function="backward", library="torch")
    record = ExceptionRecord(type="RuntimeError", message="ready twice", frames=(frame,))
    found = cured(tmp_path, files, Incident(exceptions=(record,)))
    assert found == ("train.py", ["h = checkpoint(self.body, h, use_reentrant=False)"])


HANDED_ON = "def make(**rest):\n    return Block(4, True, True, **rest)\n\n\nnet = make(**yaml.safe_load(open('run.yaml'))['net'])\n"
MAPPING = "self.options = dict(cfg)\n        self.enabled = self.options.pop('enabled')"


@pytest.mark.parametrize("has_reentered", [True, False])
def test_a_mapping_that_nobody_can_follow(tmp_path, has_reentered: bool) -> None:  # noqa: FBT001
    """What the program's files say of the form is changed where the backward of a reentrant segment failed."""
    run = "net:\n  cfg:\n    enabled: true\n    use_reentrant: true\n"
    files = block(MAPPING, OPTIONS, HANDED_ON, run_yaml=run)
    frame = Frame(file="/x/torch/utils/checkpoint.py", line=331, function="backward", library="torch")
    record = ExceptionRecord(type="RuntimeError", message="is incompatible with .grad()", frames=(frame,))
    found = cured(tmp_path, files, Incident(exceptions=(record,)) if has_reentered else failed())
    assert found == (("run.yaml", ["use_reentrant: false"]) if has_reentered else None)
