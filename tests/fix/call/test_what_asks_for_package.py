"""The setting that asks for a missing package is pointed at; nothing is edited."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, failed, write

BNB = "You need to install `bitsandbytes` in order to use bitsandbytes optimizers: `pip install -U bitsandbytes`"
FLASH = "FlashAttention2 has been toggled on, but it cannot be used: the package flash_attn seems to be not installed."
BOARD = "TensorBoardCallback requires tensorboard to be installed."
MAIN = (
    "from transformers import TrainingArguments\nargs = TrainingArguments('out', report_to=['tensorboard', 'wandb'])\n"
)
FOUND = {
    "an optimizer in a file": (BNB, {"run.yaml": "train:\n  lr: 1.0e-3\n  optim: paged_adamw_8bit\n"}, ("run.yaml", 3)),
    "a flag": (BNB, {"run.json": '{\n  "load_in_4bit": true\n}\n'}, ("run.json", 2)),
    "an argument": (FLASH, {"net.py": "net = load('x', attn_implementation='flash_attention_2')\n"}, ("net.py", 1)),
    "a tracker": (BOARD, {"run.yaml": "optim: adamw_torch\n"}, ("train.py", 2)),
}  # fmt: skip
SILENT = {
    "an optimizer of torch": (BNB, {"run.yaml": "optim: adamw_torch\nload_in_4bit: false\n"}),
    "another package": ("No module named 'einops'", {"run.yaml": "optim: paged_adamw_8bit\n"}),
}


@pytest.mark.parametrize(("message", "files", "at"), FOUND.values(), ids=FOUND)
def test_the_setting_is_named(tmp_path, message: str, files: dict[str, str], at: tuple[str, int]) -> None:
    """With its own file and line."""
    proposal = best("what_asks_for_package", write(tmp_path, {"train.py": MAIN, **files}), incident=failed({}, message))
    assert proposal is not None
    assert proposal.edits == ()
    assert (pathlib.Path(proposal.culprit.file).name, proposal.culprit.line) == at


@pytest.mark.parametrize(("message", "files"), SILENT.values(), ids=SILENT)
def test_nothing_else_is(tmp_path, message: str, files: dict[str, str]) -> None:
    """A setting that says no, and one that asks for another package."""
    assert (
        best("what_asks_for_package", write(tmp_path, {"train.py": "", **files}), incident=failed({}, message)) is None
    )
