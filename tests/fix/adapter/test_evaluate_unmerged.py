"""A model that trains on is evaluated with its adapter, or as a merged copy; merges behind the training stay."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import diff_lines, failed, write

HEAD = """import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, TrainerCallback
"""
BUILD = """
def build():
    return get_peft_model(AutoModelForCausalLM.from_pretrained("base"), LoraConfig(r=2))
"""
LOOP = """
def main(loader, test):
    model = build()
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(3):
        {train}
        for batch in loader:
            model(**batch).loss.backward()
            optimizer.step()
        {each}
    {end}
"""
EVALUATE = """
def evaluate(model, test):
    merged = model.merge_and_unload()
    merged.eval()
    return sum(merged(**one).loss.item() for one in test)
"""


def loop(each: str, end: str = "return model", train: str = "model.train()") -> str:
    return BUILD + LOOP.replace("{train}", train).replace("{each}", each).replace("{end}", end)


RIGHT = {
    "after the training": EVALUATE + loop("pass", "return evaluate(model, test)"),
    "saved after the training": loop("pass", "model.merge_and_unload().save_pretrained('out')"),
    "in the last epoch": EVALUATE + loop("if epoch == 2:\n            evaluate(model, test)"),
    "before it ends early": EVALUATE + loop("if test is None:\n            evaluate(model, test)\n            break"),
    "a copy": "import copy\n"
    + EVALUATE.replace("model.merge", "copy.deepcopy(model).merge")
    + loop("evaluate(model, test)"),
    "a copy with a name": "import copy\n"
    + EVALUATE.replace("    merged =", "    model = copy.deepcopy(model)\n    merged =")
    + loop("evaluate(model, test)"),
    "one that is loaded for it": EVALUATE.replace("    merged =", "    model = PeftModel.from_pretrained(build(), 'run')\n    merged =")
    + loop("evaluate(model, test)"),
    "put on again": BUILD + LOOP.replace("{train}", "pass").replace("{end}", "pass").replace(
        "{each}", "model = get_peft_model(model.merge_and_unload(), LoraConfig(r=2))"
    ),
    "a model of each round": BUILD
    + "\ndef run(loader):\n    for seed in range(3):\n        model = build()\n        for batch in loader:\n            model(**batch).loss.backward()\n"
    "        model.merge_and_unload().save_pretrained(str(seed))\n",
    "merged and unmerged": loop("model.merge_adapter()\n        model.unmerge_adapter()"),
}  # fmt: skip
ASKED = [
    "-    merged = model.merge_and_unload()",
    "-    merged.eval()",
    "-    return sum(merged(**one).loss.item() for one in test)",
]
ASKED += ["+    model.eval()", "+    return sum(model(**one).loss.item() for one in test)"]
COPIED = [
    "+import copy",
    "-    merged = model.merge_and_unload()",
    "+    merged = copy.deepcopy(model).merge_and_unload()",
]
SAVED = "        model.merge_and_unload().save_pretrained('out')"
CALLBACK = """
class Probe(TrainerCallback):
    def on_epoch_end(self, args, state, control, model=None, **kwargs):
        merged = model.merge_and_unload()
        merged.eval()
        print(merged.generate(max_new_tokens=2))
"""
WRONG = {
    "evaluated after each epoch": (EVALUATE + loop("print(evaluate(model, test))"), ASKED),
    "every second epoch": (EVALUATE + loop("if epoch % 2 == 0:\n            evaluate(model, test)"), ASKED),
    "nothing sets train again": (EVALUATE + loop("evaluate(model, test)", train="pass"), COPIED),
    "never set to eval": (
        EVALUATE.replace("    merged.eval()\n", "") + loop("evaluate(model, test)"),
        COPIED,
    ),
    "the result is saved": (
        EVALUATE.replace("    return", "    merged.save_pretrained('out')\n    return") + loop("evaluate(model, test)"),
        COPIED,
    ),
    "saved in the loop": (
        loop(SAVED.strip()),
        ["+import copy", f"-{SAVED}", f"+{SAVED.replace('model', 'copy.deepcopy(model)')}"],
    ),
    "the name is bound anew": (
        EVALUATE.replace("merged", "model") + loop("evaluate(model, test)"),
        ["-    model = model.merge_and_unload()"],
    ),
    "a callback": (
        CALLBACK,
        ["-        merged = model.merge_and_unload()", "-        merged.eval()", "-        print(merged.generate(max_new_tokens=2))",
         "+        model.eval()", "+        print(model.generate(max_new_tokens=2))"],
    ),
}  # fmt: skip


def mended(folder: pathlib.Path, source: str) -> str:
    program = write(folder, {"train.py": source})
    found = list(find_codemod("evaluate_unmerged")(Context(program=program, incident=failed())))
    return splice(source, found[0].edits) or "" if found else source


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(body: str, tmp_path: pathlib.Path) -> None:
    """A merge after which nothing trains, or that does not touch what trains."""
    assert mended(tmp_path, HEAD + body) == HEAD + body


@pytest.mark.parametrize(("body", "changes"), WRONG.values(), ids=WRONG)
def test_the_adapter_stays_on(body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The model itself is asked where that is the same; else a copy is merged."""
    after = mended(tmp_path, HEAD + body)
    assert diff_lines(HEAD + body, after) == changes
    assert mended(tmp_path, after) == after
