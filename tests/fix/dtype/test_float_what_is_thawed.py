"""What is thawed of a float16 base is made float32."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

HALF = """import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 2))
net[:2].half().requires_grad_(False)

def thaw(top):
    top.requires_grad_(True)
    return list(top.parameters())

opt = torch.optim.AdamW(net[2].parameters())
opt.add_param_group({"params": thaw(net[1])})
scaler = torch.amp.GradScaler("cpu")
scaler.unscale_(opt)
"""
LOOP = HALF.replace(
    "    top.requires_grad_(True)\n", "    for p in top.parameters():\n        p.requires_grad = True\n"
)
TESTED = HALF.replace(
    "    top.requires_grad_(True)\n",
    "    for name, p in top.named_parameters():\n        if name.startswith('norm'):\n            p.requires_grad_(True)\n",
)
EDITS = {
    "a module": (HALF, ["-    top.requires_grad_(True)", "+    top.float().requires_grad_(True)"]),
    "a loop": (LOOP, ["+    top.float()"]),
    "some of its parameters": (TESTED, ["+            p.data = p.data.float()"]),
}
STAYS = {
    "nothing is thawed": HALF.replace("requires_grad_(True)", "requires_grad_(False)"),
    "one parameter": HALF.replace("thaw(net[1])", "thaw(net[1].weight)").replace("list(top.parameters())", "[top]"),
    "two places": HALF + "net[0].requires_grad_(True)\n",
}


@pytest.mark.parametrize("name", EDITS)
def test_it_is_made_float(tmp_path: pathlib.Path, name: str) -> None:
    source, lines = EDITS[name]
    assert diff_lines(source, rewritten(tmp_path, "float_what_is_thawed", source, "scaler.unscale_")) == lines


@pytest.mark.parametrize("name", STAYS)
def test_what_is_not_sure_stays(tmp_path: pathlib.Path, name: str) -> None:
    assert rewritten(tmp_path, "float_what_is_thawed", STAYS[name], "scaler.unscale_") == STAYS[name]
