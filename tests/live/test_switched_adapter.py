"""An adapter of PEFT that another one has replaced by the time of each backward: no error, and it never trains."""

from __future__ import annotations

import pathlib

import pytest

from tests.gate import some_at_gate
from tests.live.running import needs, run_on_transformers

pytestmark = [pytest.mark.torch, needs("peft")]

PROGRAM = """import torch
from peft import LoraConfig, get_peft_model
from torch import nn

torch.manual_seed(0)
recipe = LoraConfig(r=2, target_modules=["0"])
model = get_peft_model(nn.Sequential(nn.Linear(3, 3)), recipe, adapter_name="policy")
model.add_adapter("reference", recipe)
model.set_adapter("policy")
optimizer = torch.optim.SGD([one for one in PARAMETERS], lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    x = torch.randn(4, 3)
    STEP
    (out - ref).exp().mean().backward()
    BEFORE
    optimizer.step()
"""
POLICY = 'model.set_adapter("policy")\n    out = model(x)'
REFERENCE = 'model.set_adapter("reference")\n    with torch.no_grad():\n        ref = model(x)'
TRAINABLE = "model.parameters() if one.requires_grad"


def program(*parts: str, parameters: str = TRAINABLE, before: str = "") -> str:
    return (
        PROGRAM.replace("STEP", "\n    ".join(parts)).replace("PARAMETERS", parameters).replace("    BEFORE\n", before)
    )


QUIET = {
    "the reference first": program(REFERENCE, POLICY),
    "back again": program(POLICY, REFERENCE, 'model.set_adapter("policy")'),
    "the other one trains": program(REFERENCE.replace("no_grad", "enable_grad"), "out = x", parameters="model.parameters() if one is not None").replace("(out - ref)", "ref"),
    "replaced in some steps": program(POLICY, REFERENCE, 'if step == 1:\n        model.set_adapter("policy")'),
    "switched behind the backward": program(POLICY, "ref = 0", before='    model.set_adapter("reference")\n'),
}  # fmt: skip
SEEN = {
    "the reference last": program(POLICY, REFERENCE),
    "by all parameters": program(POLICY, REFERENCE, parameters='model.named_parameters() if ".policy." in one[0]').replace("[one for", "[one[1] for"),
}  # fmt: skip


@pytest.mark.parametrize("source", some_at_gate(SEEN, ["the reference last"]))
def test_an_adapter_that_is_replaced(source: str, tmp_path: pathlib.Path) -> None:
    """It is told with the line that replaces it."""
    (tmp_path / "train.py").write_text(source)
    done, _ = run_on_transformers(tmp_path, "train.py")
    assert (done.status, done.report.findings[0].cause) == (0, "no-graph/adapter-not-trainable")
    (one,) = done.processes[0].switched_adapters
    assert (one.adapter, one.instead) == ("policy", "reference")
    assert source.splitlines()[one.line - 1].strip() == 'model.set_adapter("reference")'


@pytest.mark.parametrize("source", some_at_gate(QUIET, ["the reference first"]))
def test_adapters_that_train(source: str, tmp_path: pathlib.Path) -> None:
    """One that is active again in time, had its gradient by then, or is not what the optimizer is for."""
    (tmp_path / "train.py").write_text(source)
    done, _ = run_on_transformers(tmp_path, "train.py")
    assert (done.status, done.report, done.processes[0].switched_adapters) == (0, None, ())
