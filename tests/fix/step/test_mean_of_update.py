"""A loss that a Trainer was seen to add up is divided where it is returned in training."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import LogLine
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

SEEN = "seen in the live program: train.py:{} returns a mean to a Trainer that adds up the 4 batches of an update: its `compute_loss` leaves `num_items_in_batch` out"
PROGRAM = """from transformers import Trainer


class Own(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, HEAD):
        outputs = model(**inputs)
        loss = outputs.logits.square().mean()
        return RETURNED
"""
DIVIDED = "loss = loss / self.args.gradient_accumulation_steps"
RETURNS = {
    "either": ("num_items_in_batch=None", "(loss, outputs) if return_outputs else loss", ["if self.model.training:", DIVIDED]),
    "the loss": ("num_items_in_batch=None", "loss", ["if self.model.training:", DIVIDED]),
    "without the argument": ("**_", "loss", ["if self.model.training:", DIVIDED]),
    "an expression": ("num_items_in_batch=None", "2 * loss", None),
}  # fmt: skip


@pytest.mark.parametrize(("head", "returned", "lines"), RETURNS.values(), ids=RETURNS)
def test_divided(head: str, returned: str, lines: list[str] | None, tmp_path: pathlib.Path) -> None:
    source = PROGRAM.replace("HEAD", head).replace("RETURNED", returned)
    program = write(tmp_path, {"train.py": source})

    def proposed(line: int):
        return best("mean_of_update", program, incident=replace(failed(), log=(LogLine(text=SEEN.format(line)),)))

    proposal = proposed(line_of(source, "def compute_loss"))
    assert (proposal is None) == (lines is None)
    if proposal is not None:
        assert changed_lines(source, splice(source, proposal.edits)) == lines
    assert proposed(1) is None
