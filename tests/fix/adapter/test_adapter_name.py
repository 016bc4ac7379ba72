"""An adapter is named by a name that there is, a second one by its own."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM
base = AutoModelForCausalLM.from_pretrained("x")
lora = LoraConfig()
"""
RIGHT = {
    "the default name": (
        HEAD
        + """model = get_peft_model(base, lora)
model.set_adapter("default")
""",
        "set_adapter",
    ),
    "a name that was given": (
        HEAD
        + """model = get_peft_model(base, lora, adapter_name="a")
model.set_adapter("a")
""",
        "set_adapter",
    ),
    "a second adapter with a name": (
        HEAD
        + """base.add_adapter(lora)
base.add_adapter(lora, adapter_name="b")
""",
        '"b"',
    ),
    "a name that is not written out": (
        HEAD
        + """import sys
model = get_peft_model(base, lora)
model.set_adapter(sys.argv[1])
""",
        "set_adapter",
    ),
}
WRONG = {
    "a name that is not there": (
        HEAD
        + """model = get_peft_model(base, lora)
model.set_adapter("summaries")
""",
        "set_adapter",
        ['model.set_adapter("default")'],
    ),
    "a name that is misspelt": (
        HEAD
        + """model = get_peft_model(base, lora, adapter_name="first")
model.add_adapter("second", lora)
model.set_adapter("secnd")
""",
        "set_adapter",
        ['model.set_adapter("second")'],
    ),
    "a name that is taken": (
        HEAD
        + """base.add_adapter(lora)
base.add_adapter(LoraConfig(r=4))
""",
        "r=4",
        ['base.add_adapter(LoraConfig(r=4), adapter_name="second")'],
    ),
    "a name of a loaded one": (
        HEAD
        + """model = PeftModel.from_pretrained(base, "run", adapter_name="style")
model.set_adapter("default")
""",
        "set_adapter",
        ['model.set_adapter("style")'],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Names that are there are left alone."""
    assert rewritten(tmp_path, "adapter_name", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The adapter is found; a second time nothing is left to do."""
    after = rewritten(tmp_path, "adapter_name", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "adapter_name", after, again) == after
