"""A cast of the weights goes."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import make_patch, splice
from explainer.model.patch import Patch
from explainer.source.program import read_program
from tests.fix.rewriting import best, changed_lines, diff_lines, failed, rewritten, write

HEAD = "import torch\nfrom torch import nn\nfrom transformers import AutoModel\n"
HALF = {"options": {"dtypes": ["float16"]}}
RIGHT = {
    "data": (HEAD + "x = torch.randn(2).half()\n", "", HALF),
    "another dtype": (HEAD + "net = nn.Linear(2, 2).to(torch.float64)\n", "", HALF),
    "a device": (HEAD + "net = nn.Linear(2, 2).to('cuda')\n", "", HALF),
    "loaded in float32": (HEAD + "net = AutoModel.from_pretrained('a', torch_dtype=torch.float32)\n", "", HALF),
    "no options": (HEAD + "net = nn.Linear(2, 2).half()\n", "", {}),
}
WRONG = {
    "in the constructor's line": (HEAD + "net = nn.Linear(2, 2).half()\n", "", HALF, ["net = nn.Linear(2, 2)"]),
    "a statement": (HEAD + "net = nn.Linear(2, 2)\nnet.half()\n", "", HALF, []),
    "an assignment to itself": (HEAD + "net = nn.Linear(2, 2)\nnet = net.to(torch.float16)\n", "", HALF, []),
    "beside a device": (
        HEAD + "net = nn.Linear(2, 2).to('cuda', torch.float16)\n",
        "",
        HALF,
        ["net = nn.Linear(2, 2).to('cuda')"],
    ),
    "by keyword": (
        HEAD + "net = nn.Linear(2, 2).to(device='cuda', dtype=torch.half)\n",
        "",
        HALF,
        ["net = nn.Linear(2, 2).to(device='cuda')"],
    ),
    "loaded in float16": (
        HEAD + "net = AutoModel.from_pretrained('a', torch_dtype=torch.float16)\n",
        "",
        HALF,
        ["net = AutoModel.from_pretrained('a', torch_dtype=torch.float32)"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Casts of data, to other dtypes, and models that are not cast are left alone."""
    assert rewritten(tmp_path, "leave_weights_uncast", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The cast goes, with its statement where nothing is left of it; a second time nothing is left to do."""
    after = rewritten(tmp_path, "leave_weights_uncast", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "leave_weights_uncast", after, None if at not in after else at or None, **given) == after


BY_SETTING = """import json
import torch
from torch import nn

cfg = json.load(open("settings.json"))
dtype = getattr(torch, cfg["model"]["dtype"])
net = nn.Linear(2, 2).to(dtype)
"""


@pytest.mark.parametrize(("dtype", "wanted"), [("float16", "float32"), ("float64", None)])
def test_a_setting_that_casts(dtype: str, wanted: str | None, tmp_path: pathlib.Path) -> None:
    """It is the file that asks for the dtype, and the file that is edited."""
    (tmp_path / "settings.json").write_text(
        f'{{"model": {{"dtype": "{dtype}"}}, "precision": {{"dtype": "float16"}}}}\n'
    )
    (tmp_path / "train.py").write_text(BY_SETTING)
    program = read_program(str(tmp_path), ["train.py"])
    found = list(
        find_codemod("leave_weights_uncast")(
            Context(program=program, incident=failed({"train.py": 7}), options=HALF["options"])
        )
    )
    if wanted is None:
        assert found == []
        return
    (one,) = found
    patch = make_patch(one.edits, program.editable(edit.file for edit in one.edits), program.root)
    assert isinstance(patch, Patch)
    (change,) = patch.files
    assert change.after.decode() == f'{{"model": {{"dtype": "{wanted}"}}, "precision": {{"dtype": "float16"}}}}\n'


OPTIONS = """import torch
from dataclasses import dataclass, field

@dataclass
class Model:
    width: int = 8
    weights: {kind} = {weights}

@dataclass
class Mixed:
    compute: str = "float16"

@dataclass
class Options:
    model: Model = {model}
    mixed: Mixed = field(default_factory=Mixed)
"""
TRAINS = """import torch
from torch import nn
from options import Options

TABLE = {{"full": torch.float32, "half": torch.float16}}
NARROW = {{"half": torch.float16, "brain": torch.bfloat16}}

class Trainer:
    def __init__(self, options):
        self.options = options
        self.net = build(options.model)

    def step(self, x):
        with torch.autocast("cpu", dtype={compute}):
            return self.net(x)

def build(options):
    net = nn.Linear(options.width, 2)
    return net.{cast}

Trainer(Options())
"""
FACTORY = "field(default_factory=Model)"
OWN = "getattr(torch, self.options.mixed.compute)"
ASKED = "getattr(torch, options.weights)"
DATACLASSES = {
    "another dtype": ("str", '"float64"', FACTORY, OWN, f"to({ASKED})", []),
    "no weights": ("str", '"float16"', FACTORY, OWN, "to(options.width)", []),
    "a default factory": ("str", '"float16"', FACTORY, OWN, f"to({ASKED})", ["+    weights: str = \"float32\""]),
    "a lambda": ("str", '"float16"', "field(default_factory=lambda: Model())", OWN, f"to({ASKED})",
                 ["+    weights: str = \"float32\""]),
    "an alias": ("str", "'half'", FACTORY, OWN, f"to(dtype={ASKED})", ["+    weights: str = 'float32'"]),
    "a field": ("str", 'field(default="float16")', FACTORY, OWN, f"to('cpu', {ASKED})",
                ["+    weights: str = field(default=\"float32\")"]),
    "a dtype": ("torch.dtype", "torch.float16", FACTORY, OWN, "to(options.weights)",
                ["+    weights: torch.dtype = torch.float32"]),
    "a table": ("str", '"half"', FACTORY, OWN, "to(TABLE[options.weights])", ["+    weights: str = \"full\""]),
    "a table without float32": ("str", '"half"', FACTORY, OWN, "to(NARROW[options.weights])", ["+    return net"]),
    "what autocast computes in": ("str", '"float16"', FACTORY, "getattr(torch, self.options.model.weights)",
                                  f"to('cpu', {ASKED})", ["+    return net.to('cpu')"]),
    "what is compared": ("str", '"float16"', FACTORY, OWN + ', enabled=self.options.model.weights == "float16"',
                         f"to({ASKED})", ["+    return net"]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "weights", "model", "compute", "cast", "wanted"), DATACLASSES.values(), ids=DATACLASSES
)
def test_an_option_that_casts(
    kind: str, weights: str, model: str, compute: str, cast: str, wanted: list[str], tmp_path: pathlib.Path
) -> None:
    """The default that asks for float16 says float32, if it says nothing but the dtype of the weights."""
    files = {
        "options.py": OPTIONS.format(kind=kind, weights=weights, model=model),
        "train.py": TRAINS.format(compute=compute, cast=cast),
    }
    program = write(tmp_path, files)
    proposal = best("leave_weights_uncast", program, incident=failed({"train.py": 14}), **HALF)
    after = (
        ""
        if proposal is None
        else splice(program.editable([proposal.edits[0].file])[proposal.edits[0].file].text, proposal.edits)
    )
    before = "" if proposal is None else files[pathlib.Path(proposal.edits[0].file).name]
    assert [line for line in diff_lines(before, after or "") if line[0] == "+"] == wanted


PRECISION = """import json
from functools import partial

import torch
from torch import nn

AMP = {"amp": torch.float16, "amp_bf16": torch.bfloat16}
CAST = {"fp16": torch.float16, "bf16": torch.bfloat16}


def convert(model, dtype):
    for p in model.parameters():
        p.data = p.data.to(dtype)


def create(precision):
    model = nn.Linear(2, 2)
    if precision in CAST:
        convert(model, CAST[precision])
    return model


config = json.load(open("config.json"))
model = create(config["precision"])
images = torch.ones(2, 2)
images = images.to(torch.float32)
with AUTOCAST("cpu", dtype=AMP[config["precision"]]) if config["precision"] in AMP else torch.enable_grad():
    model(images)
"""


@pytest.mark.parametrize(
    ("autocast", "word"), [("torch.autocast", "amp"), ("partial(torch.autocast)", None), ("torch.device", None)]
)
def test_the_word_of_autocast(autocast: str, word: str | None, tmp_path: pathlib.Path) -> None:
    """A configuration whose other words compute in float16 under autocast says such a word; weights cast one by one stay in the code."""
    (tmp_path / "config.json").write_text('{"precision": "fp16"}\n')
    program = write(tmp_path, {"train.py": PRECISION.replace("AUTOCAST", autocast)})
    found = best("leave_weights_uncast", program, incident=failed({"train.py": 27}), **HALF)
    if word is None:
        assert found is None
    else:
        assert found is not None
        assert [edit.new for edit in found.edits] == [f'"{word}"']
