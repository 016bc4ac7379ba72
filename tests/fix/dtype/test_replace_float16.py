"""float16 becomes bfloat16, or float32 where there is no bfloat16, everywhere at once."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\nfrom torch import nn\n"
BFLOAT = {"options": {"dtype": "bfloat16"}}
FLOAT = {"options": {"dtype": "float32"}}
RIGHT = {
    "bfloat16 already": (HEAD + "net = nn.Linear(2, 2).to(torch.bfloat16)\n", "", BFLOAT),
    "float32": (HEAD + "net = nn.Linear(2, 2)\n", "", BFLOAT),
    "a comparison": (HEAD + "careful = dtype == torch.float16\n", "", BFLOAT),
    "a GPU without bfloat16": (HEAD + "net = nn.Linear(2, 2).half()\n", "", {**BFLOAT, "ability": lambda name: False}),
    "no options": (HEAD + "net = nn.Linear(2, 2).half()\n", "", {}),
    "a table of names": (HEAD + "DTYPES = {'float16': torch.float16, 'float32': torch.float32}\n", "", BFLOAT),
    "what NumPy reads": (HEAD + "net = nn.Linear(2, 2).half()\nkept = net.weight.detach().numpy()\n", "", BFLOAT),
    "nothing that NumPy reads": (
        HEAD + "net = nn.Linear(2, 2).half()\n",
        "",
        {"options": {"dtype": "float32", "for_numpy": True}},
    ),
    "a word of no setting": (HEAD + "print(name='fp16')\n", "", BFLOAT),
}
WRONG = {
    "what NumPy reads in float32": (
        HEAD + "net = nn.Linear(2, 2).half()\nkept = net.weight.grad.numpy()\n",
        "",
        {"options": {"dtype": "float32", "for_numpy": True}},
        ["net = nn.Linear(2, 2).float()"],
    ),
    "cast before NumPy reads it": (
        HEAD + "net = nn.Linear(2, 2).half()\nkept = net.weight.detach().float().numpy()\n",
        "",
        BFLOAT,
        ["net = nn.Linear(2, 2).bfloat16()"],
    ),
    "a method": (HEAD + "net = nn.Linear(2, 2).half()\n", "", BFLOAT, ["net = nn.Linear(2, 2).bfloat16()"]),
    "a cast": (
        HEAD + "net = nn.Linear(2, 2).to(torch.half)\n",
        "",
        BFLOAT,
        ["net = nn.Linear(2, 2).to(torch.bfloat16)"],
    ),
    "a name used twice": (
        HEAD + "dtype = torch.float16\nnet = nn.Linear(2, 2).to(dtype)\n",
        "",
        BFLOAT,
        ["dtype = torch.bfloat16"],
    ),
    "autocast and data": (
        HEAD + "x = x.half()\nwith torch.autocast('cuda', dtype=torch.float16):\n    y = net(x)\n",
        "",
        BFLOAT,
        ["x = x.bfloat16()", "with torch.autocast('cuda', dtype=torch.bfloat16):"],
    ),
    "a flag": (
        "args = TrainingArguments('out', fp16=True)\n",
        "",
        BFLOAT,
        ["args = TrainingArguments('out', bf16=True)"],
    ),
    "a flag for float32": (
        "args = TrainingArguments('out', fp16=True)\n",
        "",
        FLOAT,
        ["args = TrainingArguments('out', fp16=False)"],
    ),
    "a word": ("model = load('a', torch_dtype='float16')\n", "", FLOAT, ["model = load('a', torch_dtype='float32')"]),
    "mixed precision by word": (
        "fabric = Fabric(precision='16-mixed')\n",
        "",
        BFLOAT,
        ["fabric = Fabric(precision='bf16-mixed')"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Programs without float16, and bfloat16 for a GPU that has none, are left alone."""
    assert rewritten(tmp_path, "replace_float16", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """Every place that chooses float16 is changed together; a second time nothing is left to do."""
    after = rewritten(tmp_path, "replace_float16", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "replace_float16", after, None if at not in after else at or None, **given) == after
