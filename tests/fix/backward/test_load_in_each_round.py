"""A model that each round of a loop adapts is loaded in each round."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "from peft import get_peft_model\nfrom transformers import BertModel\n"
FOLDS = (
    HEAD
    + """def validate(path, config):
    base = MADE
    BETWEEN
    for fold in range(3):
        seed(fold)
        ADAPT
        fit(net, fold)
    AFTER
"""
)


def folds(made: str = "BertModel.from_pretrained(path)", adapt: str = "base.add_adapter(config)", **given: str) -> str:
    text = FOLDS.replace("MADE", made).replace("ADAPT", adapt)
    return text.replace("BETWEEN", given.get("between", "pass")).replace("AFTER", given.get("after", "pass"))


RIGHT = {
    "a model that starts at random": folds("BertModel(config)"),
    "used before the loop": folds(between="measure(base)"),
    "used behind the loop": folds(after="base.save_pretrained(path)"),
    "loaded in the loop": folds("None", "base = BertModel.from_pretrained(path); base.add_adapter(config)"),
    "no loop": HEAD + "base = BertModel.from_pretrained(path)\nbase.add_adapter(config)\n",
    "chosen by a branch": folds(between="if big:\n        base = BertModel.from_pretrained(big)"),
}
WRONG = {"a method": "base.add_adapter(config)", "a function": "net = get_peft_model(base, config)"}


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str) -> None:
    """What is needed outside of the loop, or is made otherwise, is left where it is."""
    at = next(line for line in source.splitlines() if "add_adapter(" in line).strip()
    assert rewritten(tmp_path, "load_in_each_round", source, at) == source


@pytest.mark.parametrize("adapt", WRONG.values(), ids=WRONG)
def test_loaded_in_the_round(tmp_path, adapt: str) -> None:
    """As its first statement; nothing is left to do then."""
    source = folds(adapt=adapt)
    after = rewritten(tmp_path, "load_in_each_round", source, adapt)
    assert "    for fold in range(3):\n        base = BertModel.from_pretrained(path)\n        seed(fold)\n" in after
    assert len(after.splitlines()) == len(source.splitlines())
    assert changed_lines(source, after) == ["base = BertModel.from_pretrained(path)"]
    assert rewritten(tmp_path, "load_in_each_round", after, adapt) == after
