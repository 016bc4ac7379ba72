"""Adapters are loaded for training, put on after what freezes, and made the active one."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """from peft import LoraConfig, PeftModel, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM
base = AutoModelForCausalLM.from_pretrained("base")
lora = LoraConfig(r=2, target_modules=["q_proj"])
"""
RIGHT = {
    "loaded for training": (
        HEAD
        + """model = PeftModel.from_pretrained(base, "run", is_trainable=True)
""",
        "",
    ),
    "trainable as an option says": (
        HEAD
        + """import sys
model = PeftModel.from_pretrained(base, "run", is_trainable=bool(sys.argv[1:]))
""",
        "",
    ),
    "a configuration that is loaded": (
        HEAD
        + """from peft import PeftConfig
config = PeftConfig.from_pretrained("run")
""",
        "",
    ),
    "prepared before": (
        HEAD
        + """model = prepare_model_for_kbit_training(base)
model = get_peft_model(model, lora)
""",
        "",
    ),
    "activated": (
        HEAD
        + """model = get_peft_model(base, lora)
model.add_adapter("new", lora)
model.set_adapter("new")
""",
        "",
    ),
    "an adapter of a transformers model": (
        HEAD
        + """base.add_adapter("new", lora)
""",
        "",
    ),
}
WRONG = {
    "loaded": (
        HEAD
        + """model = PeftModel.from_pretrained(base, "run")
""",
        "",
        ['model = PeftModel.from_pretrained(base, "run", is_trainable=True)'],
    ),
    "loaded for inference by name": (
        HEAD
        + """import peft
model = peft.AutoPeftModelForCausalLM.from_pretrained("run", is_trainable=False)
""",
        "",
        ['model = peft.AutoPeftModelForCausalLM.from_pretrained("run", is_trainable=True)'],
    ),
    "prepared afterwards": (
        HEAD
        + """model = get_peft_model(base, lora)
model = prepare_model_for_kbit_training(model)
""",
        "",
        ["model = prepare_model_for_kbit_training(base)"],
    ),
    "frozen afterwards": (
        HEAD
        + """model = get_peft_model(base, lora)
for p in model.parameters():
    p.requires_grad = False
""",
        "",
        ["for p in base.parameters():"],
    ),
    "frozen afterwards under the same name": (
        HEAD.replace("base =", "model =")
        + """model = get_peft_model(model, lora)
model.requires_grad_(False)
""",
        "",
        [],
    ),
    "another one active": (
        HEAD
        + """model = get_peft_model(base, lora)
model.add_adapter("new", lora)
""",
        "",
        ['model.set_adapter("new")'],
    ),
    "a second one for what is scored without gradients": (
        HEAD
        + """import torch
model = get_peft_model(base, lora, adapter_name="policy")
model.add_adapter("reference", lora)


@torch.no_grad()
def score(model, ids):
    model.set_adapter("reference")
    scores = model(ids)
    return scores


score(model, ids)
""",
        "",
        ['model.set_adapter("policy")'],
    ),
    "switched off for the base model": (
        """import torch
from peft import get_peft_model


def anchor(model, ids):
    model.disable_adapter_layers()
    with torch.no_grad():
        logits = model(ids).logits
    return logits.log_softmax(-1)


model = get_peft_model(base, config)
loss = (model(ids).logits - anchor(model, ids)).square().mean()
loss.backward()
""",
        "loss.backward()",
        ["model.enable_adapter_layers()"],
    ),
    "a configuration for inference": (
        HEAD
        + """model = get_peft_model(base, LoraConfig(r=2, inference_mode=True))
""",
        "",
        ["model = get_peft_model(base, LoraConfig(r=2, inference_mode=False))"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Adapters that train are left alone."""
    assert rewritten(tmp_path, "trainable_adapter", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The adapter trains; a second time nothing is left to do."""
    after = rewritten(tmp_path, "trainable_adapter", source, at or None)
    assert after != source
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "trainable_adapter", after, again) == after
