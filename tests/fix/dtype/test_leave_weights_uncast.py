"""A cast of the weights goes."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import make_patch
from explainer.model.patch import Patch
from explainer.source.program import read_program
from tests.fix.rewriting import changed_lines, failed, rewritten

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
