"""A new adapter that is made from a saved adapter's configuration gets one for training."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

NAMED = """from peft import PeftConfig, get_peft_model

def build(base, path):
    config = PeftConfig.from_pretrained(path)
    return get_peft_model(base, config)
"""
INLINE = """from peft import LoraConfig, get_peft_model
model = get_peft_model(base, peft_config=LoraConfig.from_pretrained("adapter"))
"""
ADDED = """from peft import LoraConfig
recipe = LoraConfig.from_pretrained("adapter")
model.add_adapter("other", recipe)
"""
EDITS = {
    "named": (NAMED, ["+    config.inference_mode = False"]),
    "in the call": (
        INLINE,
        [
            '-model = get_peft_model(base, peft_config=LoraConfig.from_pretrained("adapter"))',
            '+config = LoraConfig.from_pretrained("adapter")',
            "+config.inference_mode = False",
            "+model = get_peft_model(base, peft_config=config)",
        ],
    ),
    "a second adapter": (ADDED, ["+recipe.inference_mode = False"]),
}
OTHERS = {
    "it is said": NAMED.replace("    return", "    config.inference_mode = False\n    return"),
    "a recipe of its own": NAMED.replace("PeftConfig.from_pretrained(path)", "PeftConfig(path)"),
    "a model's": NAMED.replace("from peft import PeftConfig,", "from peft import").replace("PeftConfig", "AutoConfig"),
    "to be used": NAMED.replace("get_peft_model(base, config)", "PeftModel.from_pretrained(base, path, config=config)"),
}


@pytest.mark.parametrize(("source", "wanted"), EDITS.values(), ids=EDITS)
def test_a_recipe_that_was_saved(source: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "recipe_for_training", source)
    assert diff_lines(source, after) == wanted
    assert rewritten(tmp_path, "recipe_for_training", after) == after


@pytest.mark.parametrize("source", OTHERS.values(), ids=OTHERS)
def test_other_recipes_stay(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "recipe_for_training", source) == source
