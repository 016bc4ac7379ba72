"""Logits lose the virtual tokens of prompt tuning, which stand before the text."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

SHIFTED = "Expected input batch_size (36) to match target batch_size (20)."  # 4 samples, 6 labels, 4 virtual tokens
WHOLE = "Expected input batch_size (40) to match target batch_size (24)."
HEAD = """import torch
import torch.nn.functional as F
from torch import nn
from peft import PromptTuningConfig, get_peft_model
model = get_peft_model(base, PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4))
criterion = nn.CrossEntropyLoss()


"""
STEP = HEAD + """def compute_loss(model, inputs):
    labels = inputs.pop("labels")
    outputs = model(**inputs)
"""  # fmt: skip
SHIFTS = """    logits = outputs.logits[:, :-1]
    targets = labels[:, 1:]
    return F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1))
"""
CURED = {
    "both are shifted": (STEP + SHIFTS, SHIFTED, ["logits = outputs.logits[:, -labels.size(1):-1]"]),
    "with all axes, by the layer of the loss": (
        STEP + """    logits = outputs["logits"]
    shifted = logits[..., :-1, :].contiguous()
    return criterion(shifted.view(-1, shifted.size(-1)), labels[..., 1:].contiguous().view(-1))
""",
        SHIFTED, ["shifted = logits[..., -labels.size(1):-1, :].contiguous()"],
    ),
    "in the call itself": (
        STEP + "    return F.cross_entropy(outputs.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())\n",
        SHIFTED, ["return F.cross_entropy(outputs.logits[:, -labels.size(1):-1].flatten(0, 1), labels[:, 1:].flatten())"],
    ),
    "none is shifted": (
        STEP + "    return F.cross_entropy(outputs.logits.reshape(-1, 9), labels.reshape(-1))\n",
        WHOLE, ["return F.cross_entropy(outputs.logits[:, -labels.size(1):].reshape(-1, 9), labels.reshape(-1))"],
    ),
    "none is shifted, and a view is taken": (
        STEP + "    return F.cross_entropy(outputs.logits.view(-1, 9), labels.view(-1))\n",
        WHOLE, ["return F.cross_entropy(outputs.logits[:, -labels.size(1):].contiguous().view(-1, 9), labels.view(-1))"],
    ),
    "classes second": (
        STEP + "    return F.cross_entropy(outputs.logits.transpose(1, 2), labels)\n",
        "Expected target size [4, 10], got [4, 6]",
        ["return F.cross_entropy(outputs.logits[:, -labels.size(1):].transpose(1, 2), labels)"],
    ),
    "labels that are read behind the logits": (
        HEAD + """for batch in loader:
    logits = model(**batch).logits[:, :-1]
    labels = batch["labels"]
    loss = F.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten())
""",
        SHIFTED, ['logits = model(**batch).logits[:, -batch["labels"].size(1):-1]'],
    ),
    "a function of the loss": (
        HEAD + """def token_loss(logits, labels):
    logits, more = logits[:, :-1], None
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())
""".replace("logits, more = logits[:, :-1], None", "logits = logits[:, :-1, :]").replace("labels.flatten", "labels[:, 1:].flatten"),
        SHIFTED, ["logits = logits[:, -labels.size(1):-1, :]"],
    ),
    "the encoder of p-tuning": (
        STEP.replace("PromptTuningConfig", "PromptEncoderConfig") + SHIFTS,
        SHIFTED, ["logits = outputs.logits[:, -labels.size(1):-1]"],
    ),
    "a kind by its name": (
        STEP.replace("PromptTuningConfig, get", "get_peft_config, get").replace("PromptTuningConfig(", 'get_peft_config({"peft_type": "P_TUNING"}, ')
        + SHIFTS,
        SHIFTED, ["logits = outputs.logits[:, -labels.size(1):-1]"],
    ),
}  # fmt: skip
STAYS = {
    "prefix tuning, whose tokens are no positions": (STEP.replace("PromptTuning", "PrefixTuning") + SHIFTS, SHIFTED),
    "another adapter": (STEP.replace("PromptTuningConfig", "LoraConfig") + SHIFTS, SHIFTED),
    "another number of tokens": (STEP.replace("tokens=4", "tokens=5") + SHIFTS, SHIFTED),
    "fewer predictions than targets": (
        STEP + SHIFTS,
        "Expected input batch_size (4) to match target batch_size (20).",
    ),
    "only the labels are shifted": (
        STEP + SHIFTS.replace("logits[:, :-1]", "logits"),
        "Expected input batch_size (40) to match target batch_size (20).",
    ),
    "the classes are cut": (STEP + SHIFTS.replace("[:, :-1]", "[..., :-1]"), SHIFTED),
    "labels that are shifted before the logits are cut": (
        STEP + """    labels = labels[:, 1:]
    logits = outputs.logits[:, :-1]
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())
""",
        SHIFTED,
    ),
    "the virtual tokens are left out already": (STEP + SHIFTS.replace("[:, :-1]", "[:, 3:-1]"), SHIFTED),
}  # fmt: skip


def cured(folder: pathlib.Path, source: str, message: str) -> str:
    at = next(one for one in source.splitlines() if "cross_entropy(" in one or "criterion(" in one).strip()
    return rewritten(folder, "drop_virtual_tokens", source, at, message=message, tensors={"labels": "[4, 6] int64"})


@pytest.mark.parametrize(("source", "message", "wanted"), CURED.values(), ids=CURED)
def test_virtual_tokens_are_left_out(tmp_path: pathlib.Path, source: str, message: str, wanted: list[str]) -> None:
    """They are left out in front, where the logits are cut or read."""
    assert changed_lines(source, cured(tmp_path, source, message)) == wanted


@pytest.mark.parametrize(("source", "message"), STAYS.values(), ids=STAYS)
def test_other_programs_stay(tmp_path: pathlib.Path, source: str, message: str) -> None:
    """Numbers that do not fit, other adapters and other cuts are left alone."""
    assert cured(tmp_path, source, message) == source


def test_settings_say_how_many(tmp_path: pathlib.Path) -> None:
    """A file that the configuration takes its options from counts; where nothing says how many, the fix is unsafe."""
    options = STEP.replace('task_type="CAUSAL_LM", num_virtual_tokens=4', '**cfg["peft"]')
    source = options.replace("import torch\n", "import torch\nimport yaml\ncfg = yaml.safe_load(open('a.yaml'))\n", 1)
    for text, wanted in (("4", None), ("5", "nothing"), ("", "unsafe")):
        written = f"peft:\n  num_virtual_tokens: {text}\n" if text else "peft:\n  task_type: CAUSAL_LM\n"
        program = write(tmp_path, {"a.yaml": written, "train.py": source + SHIFTS})
        frames = {"train.py": line_of(source + SHIFTS, "return F")}
        found = best(
            "drop_virtual_tokens", program, incident=failed(frames, SHIFTED, tensors={"labels": "[4, 6] int64"})
        )
        assert (found.applicability if found is not None else "nothing") == wanted


@pytest.mark.slow
def test_the_loss_is_that_of_the_library(tmp_path: pathlib.Path) -> None:
    """What the edit compares is what PEFT's model compares when it gets the labels: each with the position before it."""
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    import torch

    torch.manual_seed(0)
    size = {"vocab_size": 9, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    base = transformers.LlamaForCausalLM(transformers.LlamaConfig(**size))
    model = peft.get_peft_model(base, peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4))
    ids = torch.randint(0, 9, (4, 6))
    labels = ids.clone()
    labels[
        :, 0
    ] = -100  # the library has the last virtual token predict the first one of the text, which the program leaves out
    after = cured(tmp_path, STEP + SHIFTS, SHIFTED)
    space: dict = {"F": torch.nn.functional}
    exec(after[after.index("def compute_loss") :], space)  # noqa: S102 - the program of a test
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    loss = space["compute_loss"](model, {**given, "labels": labels.clone()})
    assert torch.allclose(loss, model(**given, labels=labels).loss)
