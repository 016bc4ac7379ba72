"""Codemods that follow a library's interface: a moved import, a parameter that an override lacks."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import make_patch
from explainer.model.incident import ExceptionRecord, Frame, Incident
from explainer.model.interface import Change
from explainer.source.program import read_program

RAISED = Frame(file="train.py", line=1, code="t = Fit(args=Config(**more), text='a')")
FAILED = Incident(exceptions=(ExceptionRecord(type="ImportError", message="failed", frames=(RAISED,)),))
MOVED = Change(library="lib", kind="import", of="lib", old="Adam", new="torch.optim.AdamW", write="x", checked="run")
CAME = Change(library="lib", kind="argument", of="Base.loss", new="count", added="2", write="x", checked="run")
GPUS = Change(
    library="lib", kind="argument", of="Trainer", old="gpus", new="devices", removed="2", write="x", checked="run",
    becomes=('0|None -> accelerator="cpu"', '* -> accelerator="gpu", devices=@'),
)  # fmt: skip
BAR = Change(
    library="lib", kind="argument", of="Trainer", old="bar", removed="2", write="`callbacks=[Bar()]`", checked="run",
    becomes=("0 -> has_bar=False", "1 ->"),
)  # fmt: skip
TEXT = Change(
    library="lib",
    kind="argument",
    of="Fit",
    old="text",
    new="Config.text",
    added="2",
    removed="2",
    write="x",
    checked="run",
)
STEP = Change(
    library="lib", kind="argument", of="Trainer.training_step", new="num_items_in_batch", added="2", write="x", checked="run"
)  # fmt: skip
TABLE = {
    ("Trainer.training_step", "num_items_in_batch"): [STEP],
    ("lib", "Adam"): [MOVED], ("Base.loss", "count"): [CAME], ("Trainer", "gpus"): [GPUS], ("Trainer", "bar"): [BAR],
    ("Fit", "text"): [TEXT],
}  # fmt: skip
OLD, BARRED, GIVEN = (
    {"callee": f"{of}.__init__", "argument": one}
    for of, one in (("Trainer", "gpus"), ("Trainer", "bar"), ("Fit", "text"))
)
IMPORT = {"module": "lib", "name": "Adam"}
CALL = {"callee": "Own.loss", "argument": "count"}
COUNTED = {"callee": "Own.training_step", "taken": "3", "given": "4"}

# The codemod, what the message names, and a program that stays as it is.
STAYS = {
    "another module": ("moved_import", IMPORT, "from other import Adam\n"),
    "a relative import": ("moved_import", IMPORT, "from .lib import Adam\n"),
    "another name": ("moved_import", IMPORT, "from lib import Sgd\n"),
    "a name that the table does not know": ("moved_import", {"module": "lib", "name": "Sgd"}, "from lib import Sgd\n"),
    "a parameter that is there": ("parameter_of_override", CALL, "class Own(Base):\n    def loss(self, count=None): ...\n"),
    "an override that takes any": ("parameter_of_override", CALL, "class Own(Base):\n    def loss(self, **rest): ...\n"),
    "a count of two more": ("parameter_of_override", {**COUNTED, "given": "5"}, "class Own(Trainer):\n    def training_step(self, model, inputs): ...\n"),
    "a count of another form": ("parameter_of_override", {**COUNTED, "taken": "2", "given": "3"}, "class Own(Trainer):\n    def training_step(self, batch): ...\n"),
    "a method that is given nothing new by its place": ("parameter_of_override", {**COUNTED, "callee": "Own.loss"}, "class Own(Base):\n    def loss(self, model, inputs): ...\n"),
    "a class of another base": ("parameter_of_override", CALL, "class Own(Other):\n    def loss(self): ...\n"),
    "a value that decides, and is not known": ("renamed_argument", BARRED, "t = Trainer(a=1, bar=20)\n"),
    "an argument that the table does not know": ("parameter_of_override", {**CALL, "argument": "size"}, "class Own(Base):\n    def loss(self): ...\n"),
}  # fmt: skip
CURED = {
    "the only name": ("moved_import", IMPORT, "from lib import Adam\n", "from torch.optim import AdamW as Adam\n"),
    "a name with another": ("moved_import", IMPORT, "from lib import Adam as A\n", "from torch.optim import AdamW as A\n"),
    "the last of several": ("moved_import", IMPORT, "from lib import x, Adam\n", "from torch.optim import AdamW as Adam\nfrom lib import x\n"),
    "the first of several in parentheses": ("moved_import", IMPORT, "from lib import (\n    Adam,\n    x,\n)\n", "from torch.optim import AdamW as Adam\nfrom lib import (\n    x,\n)\n"),
    "an argument whose value decides": ("renamed_argument", OLD, "t = Trainer(gpus=0, a=1)\n", 't = Trainer(accelerator="cpu", a=1)\n'),
    "another value of it": ("renamed_argument", OLD, "t = Trainer(gpus=n)\n", 't = Trainer(accelerator="gpu", devices=n)\n'),
    "a value that was the default": ("renamed_argument", BARRED, "t = Trainer(a=1, bar=1)\n", "t = Trainer(a=1)\n"),
    "an argument that went without another": ("renamed_argument", BARRED, "t = Trainer(bar=0)\n", "t = Trainer(has_bar=False)\n"),
    "a configuration with options of its own": ("renamed_argument", GIVEN, "t = Fit(args=Config(**more), text='a')\n", "t = Fit(args=Config(**more, text='a'))\n"),
    "a parameter after a default": ("parameter_of_override", CALL, "class Own(Base):\n    def loss(self, a, b=False): ...\n", "class Own(Base):\n    def loss(self, a, b=False, count=None): ...\n"),
    "a parameter that only a count tells": ("parameter_of_override", COUNTED, "class Own(Trainer):\n    def training_step(self, model, inputs): ...\n", "class Own(Trainer):\n    def training_step(self, model, inputs, num_items_in_batch=None): ...\n"),
    "a call of the base": ("parameter_of_override", CALL, "class Own(Base):\n    def loss(self, a):\n        return 2 * super().loss(a)\n", "class Own(Base):\n    def loss(self, a, count=None):\n        return 2 * super().loss(a, count=count)\n"),
    "a call of the base with all that came": ("parameter_of_override", CALL, "class Own(Base):\n    def loss(self, a):\n        return super().loss(*self.given)\n", "class Own(Base):\n    def loss(self, a, count=None):\n        return super().loss(*self.given)\n"),
    "a call of another method": ("parameter_of_override", CALL, "class Own(Base):\n    def loss(self, a):\n        return super().mean(a)\n", "class Own(Base):\n    def loss(self, a, count=None):\n        return super().mean(a)\n"),
    "a parameter with an annotation": ("parameter_of_override", CALL, "class Own(Base):\n    def loss(self, a: int) -> int: ...\n", "class Own(Base):\n    def loss(self, a: int, count=None) -> int: ...\n"),
}  # fmt: skip


def results(name: str, fields: dict[str, str], code: str, folder: pathlib.Path) -> list[str]:
    (folder / "train.py").write_text(code)
    program = read_program(str(folder), ["train.py"])
    context = Context(
        program=program, incident=FAILED, fields=fields, changes=lambda of, name: TABLE.get((of, name), ())
    )
    patches = [make_patch(one.edits, program.files, program.root) for one in find_codemod(name)(context)]
    return [patch.files[0].after.decode() for patch in patches]


@pytest.mark.parametrize(("name", "fields", "code"), STAYS.values(), ids=STAYS)
def test_stays(name: str, fields: dict, code: str, tmp_path: pathlib.Path) -> None:
    """What the table does not know of, or what is right, stays."""
    assert results(name, fields, code, tmp_path) == []


@pytest.mark.parametrize(("name", "fields", "code", "wanted"), CURED.values(), ids=CURED)
def test_cured(name: str, fields: dict, code: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """The program says what the installed release has; a second time nothing is left to do."""
    assert results(name, fields, code, tmp_path) == [wanted]
    assert results(name, fields, wanted, tmp_path) == []


FILES = {
    "a value that decides": ("trainer:\n  epochs: 2\n  gpus: 0\n", "trainer:\n  epochs: 2\n  accelerator: cpu\n"),
    "a value that moves along": ("trainer:\n  gpus: 2\n  epochs: 2\n", "trainer:\n  devices: 2\n  accelerator: gpu\n  epochs: 2\n"),
    "an argument that is there": ("trainer:\n  gpus: 2\n  devices: 1\n", None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), FILES.values(), ids=FILES)
def test_in_a_file(text: str, wanted: str | None, tmp_path: pathlib.Path) -> None:
    """The arguments that stand for a value are written as the file writes its own."""
    code = "import yaml\nsettings = yaml.safe_load(open('run.yaml'))\nt = Trainer(**settings['trainer'])\n"
    (tmp_path / "run.yaml").write_text(text)
    (tmp_path / "train.py").write_text(code)
    program = read_program(str(tmp_path), ["train.py"])
    context = Context(program=program, incident=FAILED, fields=OLD, changes=lambda of, name: TABLE.get((of, name), ()))
    found = list(find_codemod("renamed_argument")(context))
    files = program.editable(edit.file for one in found for edit in one.edits)
    after = [make_patch(one.edits, files, program.root).files[0].after.decode() for one in found]
    assert after == ([wanted] if wanted else [])
