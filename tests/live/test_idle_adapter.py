"""An adapter of PEFT that is added and never activated: no error, and another adapter is trained."""

from __future__ import annotations

import pathlib

import pytest

from tests.gate import some_at_gate
from tests.live.running import needs, run_on_transformers

pytestmark = [pytest.mark.torch, needs("peft")]

PROGRAM = """import torch
from peft import LoraConfig, get_peft_model
from torch import nn


def lora():
    return LoraConfig(r=2, target_modules=["0"])


torch.manual_seed(0)
model = get_peft_model(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), lora(), adapter_name="general")
model.add_adapter("clauses", lora())
BEHIND
optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 3)).square().mean().backward()
    optimizer.step()
END
"""


def program(behind: str = "", end: str = "") -> str:
    return PROGRAM.replace("BEHIND", behind).replace("END", end)


FROZEN = """for one in model.parameters():
    one.requires_grad_(False)
model.eval() if EVAL else model.train()
head = nn.Linear(3, 1)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    head(model(torch.randn(4, 3))).square().mean().backward()
    optimizer.step()
"""


def frozen(evaluates: str) -> str:
    """A head on a model whose active adapter is frozen, and that nothing else trains."""
    return PROGRAM.partition("optimizer =")[0].replace("BEHIND", "") + FROZEN.replace("EVAL", evaluates)


SEEN = {
    "never activated": program(), "gone by the end": program(end="del model, optimizer"),
    "a head beside a frozen adapter": frozen("False"),
}  # fmt: skip
COPIED = """for name, one in model.named_parameters():
    if ".clauses." in name:
        one.data.copy_(torch.ones_like(one))"""
QUIET = {
    "activated": program('model.set_adapter("clauses")'),
    "deleted": program('model.delete_adapter("clauses")'),
    "a reference with weights of its own": program(COPIED),
    "a teacher with an adapter to spare": frozen("True"),
}


@pytest.mark.parametrize("source", some_at_gate(SEEN, ["gone by the end"]))
def test_an_adapter_that_no_step_trains(source: str, tmp_path: pathlib.Path) -> None:
    """It is told with the line that adds it, and with the adapter that was trained instead."""
    (tmp_path / "train.py").write_text(source)
    done, _ = run_on_transformers(tmp_path, "train.py")
    (one,) = done.processes[0].idle_adapters
    cause = "no-graph/adapter-not-trainable" if one.is_frozen else "peft/adapter-lifecycle"
    assert (done.status, done.report.findings[0].cause) == (0, cause)
    assert one.is_frozen == ("head" in source)
    assert (one.adapter, one.instead, one.line) == ("clauses", "general", source.splitlines().index('model.add_adapter("clauses", lora())') + 1)  # fmt: skip


@pytest.mark.parametrize("source", some_at_gate(QUIET, ["activated"]))
def test_others_are_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    """One that is activated, deleted, or given weights to compare with."""
    (tmp_path / "train.py").write_text(source)
    done, _ = run_on_transformers(tmp_path, "train.py")
    assert (done.status, done.report, done.processes[0].idle_adapters) == (0, None, ())
