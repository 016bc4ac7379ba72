"""An adapter that stays merged: the loss has no graph, and the failure says why."""

from __future__ import annotations

import pathlib

import pytest

from tests.live.running import needs, run_on_transformers

pytestmark = [pytest.mark.torch, needs("peft")]

PROGRAM = """import torch
from peft import LoraConfig, get_peft_model
from torch import nn

torch.manual_seed(0)
model = get_peft_model(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), LoraConfig(r=2, target_modules=["0"]))
optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.1)
for epoch in range(2):
    optimizer.zero_grad()
    model(torch.randn(4, 3)).square().mean().backward()
    optimizer.step()
    model.merge_adapter()
    with torch.no_grad():
        model(torch.randn(4, 3))
"""


def test_a_merged_adapter_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    done, _ = run_on_transformers(tmp_path, "train.py")
    first = done.report.findings[0]
    assert (done.status, first.cause) == (1, "peft/adapter-lifecycle")
    assert "live-merged" in [one.id for one in first.evidence]
