"""Adapters that are added one for each task get the names by which the program activates them."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

TASKS = """from peft import LoraConfig
from transformers import LlamaForCausalLM
TASKS = {"billing": [1, 2], "shipping": [3]}


def train_task(model, task, rows):
    lora = LoraConfig(r=4)
    model.add_adapter(lora)
    fit(model, rows)


model = LlamaForCausalLM(config)
for task, rows in TASKS.items():
    train_task(model, task, rows)
for task in TASKS:
    model.set_adapter(task)
"""
LOOP = """from peft import LoraConfig, get_peft_model
names = ["first", "second"]
model = make()
for seed, name in enumerate(names):
    model.add_adapter("task", LoraConfig(r=4))
    fit(model, seed)
for name in names:
    model.set_adapter(name)
"""
RIGHT = {
    "named": TASKS.replace("add_adapter(lora)", "add_adapter(lora, adapter_name=task)"),
    "activated by other names": TASKS.replace("for task in TASKS:", "for task in OTHERS:"),
    "activated by one name": TASKS.replace("set_adapter(task)", 'set_adapter("billing")'),
    "given other things elsewhere": TASKS + 'train_task(model, "extra", [])\n',
    "a name that is put together": LOOP.replace('"task"', 'f"task-{seed}"'),
}
WRONG = {
    "in a function, without a name": (TASKS, "add_adapter", ["model.add_adapter(lora, adapter_name=task)"]),
    "an enumerated loop": (
        TASKS.replace("task, rows in TASKS.items()", "seed, task in enumerate(sorted(TASKS))").replace("task, rows)\nfor", "task, seed)\nfor"),
        "add_adapter",
        ["model.add_adapter(lora, adapter_name=task)"],
    ),
    "in the loop, under one name": (LOOP, "add_adapter", ["model.add_adapter(name, LoraConfig(r=4))"]),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str) -> None:
    """Where the program does not say how they are called, no name is made up."""
    assert rewritten(tmp_path, "name_of_each_adapter", source, "add_adapter") == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_each_adapter_is_named(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """A second time nothing is left to do."""
    after = rewritten(tmp_path, "name_of_each_adapter", source, at)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "name_of_each_adapter", after, at) == after
