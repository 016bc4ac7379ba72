"""A call loses a keyword argument that the rule names."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\nfrom transformers import TrainingArguments\n"
TF32 = {"options": {"calls": ["transformers.*"], "arguments": ["tf32"]}}
FAST = {"options": {"calls": ["torch.optim.*"], "arguments": ["foreach"], "beside": "fused"}}
DRAWN = {"options": {"calls": ["torch.utils.data.DataLoader"], "arguments": ["shuffle"], "given": "sampler"}}
LOADER = "from torch.utils.data import DataLoader\n"
RIGHT = {
    "no sampler": (LOADER + "rows = DataLoader(data, 4, shuffle=True, sampler=None)\n", "", DRAWN),
    "not set": (HEAD + "args = TrainingArguments('out', bf16=True)\n", "", TF32),
    "set to False": (HEAD + "args = TrainingArguments('out', tf32=False)\n", "", TF32),
    "computed": (HEAD + "args = TrainingArguments('out', tf32=able)\n", "", TF32),
    "a call of another library": (HEAD + "args = Config('out', tf32=True)\n", "", TF32),
    "foreach alone": (HEAD + "opt = torch.optim.Adam(p, foreach=True)\n", "", FAST),
    "fused set to False": (HEAD + "opt = torch.optim.Adam(p, fused=False, foreach=True)\n", "", FAST),
}
WRONG = {
    "the last argument": (
        HEAD + "args = TrainingArguments('out', tf32=True)\n",
        "",
        TF32,
        ["args = TrainingArguments('out')"],
    ),
    "the first argument": (
        HEAD + "args = TrainingArguments(tf32=True, output_dir='out')\n",
        "",
        TF32,
        ["args = TrainingArguments(output_dir='out')"],
    ),
    "the only argument": (HEAD + "args = TrainingArguments(tf32=True)\n", "", TF32, ["args = TrainingArguments()"]),
    "a line of its own": (HEAD + "args = TrainingArguments(\n    'out',\n    tf32=True,\n)\n", "", TF32, []),
    "shuffle beside a sampler": (
        LOADER + "rows = DataLoader(data, 4, shuffle=True, sampler=drawn)\n",
        "",
        DRAWN,
        ["rows = DataLoader(data, 4, sampler=drawn)"],
    ),
    "foreach beside fused": (
        HEAD + "opt = torch.optim.Adam(p, lr=0.1, fused=True, foreach=True)\n",
        "",
        FAST,
        ["opt = torch.optim.Adam(p, lr=0.1, fused=True)"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Calls without the argument, with another value, or of another library are left alone."""
    assert rewritten(tmp_path, "drop_argument", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The argument goes with its comma; a second time nothing is left to do."""
    after = rewritten(tmp_path, "drop_argument", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "drop_argument", after, None if at not in after else at or None, **given) == after
