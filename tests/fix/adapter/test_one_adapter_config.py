"""A trainer that is handed a model with an adapter is not told of another."""

from __future__ import annotations

import pathlib

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """from peft import LoraConfig, get_peft_model
from trl import DPOTrainer
adapter = LoraConfig(r=4)
model = get_peft_model(base(), adapter)
trainer = DPOTrainer(
    model=model,
    train_dataset=pairs,
    peft_config=adapter,
)
"""
MESSAGE = "You passed a `PeftModel` instance together with a `peft_config` to the trainer. Please first merge and unload the existing adapter"


def test_the_argument_goes(tmp_path: pathlib.Path) -> None:
    """A second time nothing is left to do, and another message takes nothing away."""
    after = rewritten(tmp_path, "one_adapter_config", SOURCE, "trainer =", message=MESSAGE)
    assert "peft_config" not in after
    assert changed_lines(after, SOURCE) == ["peft_config=adapter,"]
    assert rewritten(tmp_path, "one_adapter_config", after, "trainer =", message=MESSAGE) == after
    assert rewritten(tmp_path, "one_adapter_config", SOURCE, "trainer =", message="it failed") == SOURCE
