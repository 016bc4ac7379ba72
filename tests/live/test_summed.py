"""A Trainer's own loss that leaves `num_items_in_batch` out: no error, and gradients that are as many times too large."""

from __future__ import annotations

import pathlib

import pytest

from tests.gate import some_at_gate
from tests.live.running import run_on_transformers

pytestmark = pytest.mark.torch
pytest.importorskip("transformers", minversion="4.50")

PROGRAM = """import torch
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


class Own(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, HEAD):
        labels = inputs.pop("labels")
        outputs = model(input_ids=inputs["input_ids"])
        loss = F.cross_entropy(outputs.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        BODY
        return (loss, outputs) if return_outputs else loss


torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1))
rows = [{"input_ids": row, "labels": row.clone()} for row in torch.randint(9, (16, 6))]
arguments = TrainingArguments("out", max_steps=2, per_device_train_batch_size=2, gradient_accumulation_steps=BATCHES,
                              report_to="none", save_strategy="no", use_cpu=True, disable_tqdm=True)
Own(model=model, args=arguments, train_dataset=rows).train()
"""


def program(head: str = "num_items_in_batch=None", body: str = "pass", batches: int = 4) -> str:
    return PROGRAM.replace("HEAD", head).replace("BODY", body).replace("BATCHES", str(batches))


SEEN = {"left out": program(), "taken up in what is not read": program("**kwargs")}
QUIET = {
    "read": program(body="loss = loss if num_items_in_batch is None else loss * labels[:, 1:].numel() / num_items_in_batch"),
    "handed on": program("**kwargs", body="self.seen = dict(**kwargs)"),
    "divided": program(body="loss = loss / self.args.gradient_accumulation_steps"),
    "one batch an update": program(batches=1),
    "said to be no such loss": program().replace("out\", max", "out\", max").replace(
        "Own(model=model", "model.accepts_loss_kwargs = False\nOwn(model=model"
    ),
}  # fmt: skip


@pytest.mark.parametrize("source", some_at_gate(SEEN, ["left out"]))
def test_it_is_seen(source: str, tmp_path: pathlib.Path) -> None:
    """With the method that returns the mean."""
    (tmp_path / "train.py").write_text(source)
    done, _ = run_on_transformers(tmp_path, "train.py")
    assert (done.status, done.report.findings[0].cause) == (0, "trainer/manual-optimization-misuse")
    (wrong,) = done.processes[0].misscaled
    assert (wrong.kind, wrong.factor, wrong.function) == ("summed", 4.0, "compute_loss")


@pytest.mark.parametrize("source", some_at_gate(QUIET, ["read"]))
def test_others_are_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(source)
    done, _ = run_on_transformers(tmp_path, "train.py")
    assert (done.status, done.report, done.processes[0].misscaled) == (0, None, ())
