"""An adapter of PEFT that is loaded for inference and put into an optimizer: no error, and it never trains."""

from __future__ import annotations

import pathlib

import pytest

from tests.gate import some_at_gate
from tests.live.running import needs, run_on_transformers

pytestmark = [pytest.mark.torch, needs("peft")]

PROGRAM = """import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn


def base():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), nn.ReLU())


get_peft_model(base(), LoraConfig(r=2, target_modules=["0"])).save_pretrained("adapter")
model = PeftModel.from_pretrained(base(), "adapter"HOW)
head = nn.Linear(3, 1)
BEHIND
optimizer = torch.optim.SGD([*(PARAMETERS), *head.parameters()], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    head(model(torch.randn(4, 3))).square().mean().backward()
    optimizer.step()
"""
PICKED = '[one for name, one in model.named_parameters() if "lora_" in name]'


def program(how: str = "", behind: str = "", parameters: str = PICKED) -> str:
    return PROGRAM.replace("HOW", how).replace("BEHIND", behind).replace("PARAMETERS", parameters)


QUIET = {
    "loaded for training": program(", is_trainable=True"),
    "thawed": program(behind='[one.requires_grad_() for name, one in model.named_parameters() if "lora_" in name]'),
    "all that the model has": program(parameters="list(model.parameters())"),
    "none of it": program(parameters="[]"),
}


def test_an_adapter_that_no_step_trains(tmp_path: pathlib.Path) -> None:
    """It is told with the line that loads it."""
    source = program()
    (tmp_path / "train.py").write_text(source)
    done, _ = run_on_transformers(tmp_path, "train.py")
    assert (done.status, done.report.findings[0].cause) == (0, "no-graph/adapter-not-trainable")
    (one,) = done.processes[0].frozen_adapters
    assert source.splitlines()[one.line - 1].startswith("model = PeftModel")


@pytest.mark.parametrize("source", some_at_gate(QUIET, ["all that the model has"]))
def test_adapters_as_they_are_meant(source: str, tmp_path: pathlib.Path) -> None:
    """One that trains, and one that is frozen with all the rest."""
    (tmp_path / "train.py").write_text(source)
    done, _ = run_on_transformers(tmp_path, "train.py")
    assert (done.status, done.report, done.processes[0].frozen_adapters) == (0, None, ())
