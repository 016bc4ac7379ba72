"""The configuration of an adapter that nothing gets goes to the trainer, or round the model before its optimizer."""

from __future__ import annotations

import pathlib

import pytest

from explainer.source.network.idle_adapter import find_idle_adapters
from explainer.source.program import read_program
from tests.fix.rewriting import changed_lines, rewritten

SAID = "element 0 of tensors does not require grad and does not have a grad_fn"
HEAD = """from peft import LoraConfig
from torch.optim import AdamW
from transformers import LlamaForCausalLM, Trainer
from trl import SFTTrainer
model = LlamaForCausalLM(config)
for one in model.parameters():
    one.requires_grad = False
lora = LoraConfig(r=8)
print(lora, f"{lora}", lora.r)
"""
IMPORT = "from peft import LoraConfig, get_peft_model"
WRONG = {
    "a trainer of TRL": (
        "SFTTrainer(model=model, train_dataset=rows).train()\n",
        ["SFTTrainer(model=model, train_dataset=rows, peft_config=lora).train()"],
    ),
    "a trainer of transformers": (
        "Trainer(model=model, train_dataset=rows).train()\n",
        [IMPORT, "model = get_peft_model(model, lora)"],
    ),
    "a loop": (
        "optimizer = AdamW(model.parameters(), lr=1e-3)\nmodel(**batch).loss.backward()\n",
        [IMPORT, "model = get_peft_model(model, lora)"],
    ),
}


@pytest.mark.parametrize(("body", "lines"), WRONG.values(), ids=WRONG)
def test_the_model_gets_its_adapter(body: str, lines: list[str], tmp_path: pathlib.Path) -> None:
    """And nothing is left to do then; nor is the frozen base switched on."""
    source = HEAD + body
    at = body.splitlines()[-1]
    after = rewritten(tmp_path, "use_idle_adapter", source, at, message=SAID)
    assert changed_lines(source, after) == lines
    again = rewritten(tmp_path, "use_idle_adapter", after, after.splitlines()[-1], message=SAID)
    assert again == after
    assert rewritten(tmp_path, "unfreeze", source, at, message=SAID) == source


@pytest.mark.parametrize(
    "body",
    [
        "model = wrap(model, lora)\nTrainer(model=model).train()\n",
        "options = {'adapter': lora}\nTrainer(model=model).train()\n",
        "fit(model)\n",
    ],
    ids=["handed to a helper", "put away", "nothing that trains in sight"],
)
def test_left_alone(body: str, tmp_path: pathlib.Path) -> None:
    """Where something has it, or it is not seen what should."""
    source = HEAD + body
    assert rewritten(tmp_path, "use_idle_adapter", source, body.splitlines()[-1], message=SAID) == source


def test_a_configuration_of_another_file(tmp_path: pathlib.Path) -> None:
    """Who imports it has it."""
    (tmp_path / "settings.py").write_text("from peft import LoraConfig\nlora = LoraConfig(r=8)\n")
    source = "from settings import lora\nfrom transformers import Trainer\nmodel = wrap(lora)\nTrainer(model=model).train()\n"
    (tmp_path / "train.py").write_text(source)
    program = read_program(str(tmp_path), ["train.py", "settings.py"])
    assert list(find_idle_adapters(program)) == []
    (tmp_path / "train.py").write_text(
        source.replace("from settings import lora\n", "import settings\n").replace("(lora)", "()")
    )
    (found,) = find_idle_adapters(read_program(str(tmp_path), ["train.py", "settings.py"]))
    assert found.name == "lora"


def test_a_language_model_is_not_thawed_at_its_head(tmp_path: pathlib.Path) -> None:
    """Its head is no new one, that every task would train by itself; a classifier's is."""
    frozen = "from transformers import LlamaForCausalLM, BertForSequenceClassification\n{}\nfor one in model.parameters():\n    one.requires_grad = False\nmodel(**batch).loss.backward()\n"
    for made, is_thawed in (("LlamaForCausalLM(config)", False), ("BertForSequenceClassification(config)", True)):
        source = frozen.format(f"model = {made}")
        after = rewritten(tmp_path, "unfreeze", source, "model(**batch)", message=SAID)
        assert (after != source) is is_thawed
