"""An optimizer of what requires grad when it is made gets what a later stage switches on as well."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

STAGES = """import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

def thaw(parts):
    for name, child in net.named_children():
        child.requires_grad_(name in parts)

thaw(["2"])
print(sum(p.numel() for p in net.parameters() if p.requires_grad))
opt = torch.optim.Adam(filter(lambda p: p.requires_grad, net.parameters()), lr=0.1)
for parts in (["2"], ["0", "2"]):
    thaw(parts)
"""
FACTS = {"live_parts": "0 1 2"}
FILTER = "filter(lambda p: p.requires_grad, net.parameters())"
EDITS = {
    "a filter": STAGES,
    "a comprehension": STAGES.replace(FILTER, "[p for p in net.parameters() if p.requires_grad]"),
    "a generator": STAGES.replace(FILTER, "(p for p in net.parameters() if p.requires_grad)"),
    "by its flag": STAGES.replace("child.requires_grad_(name in parts)", "child.weight.requires_grad = name in parts"),
}
STAYS = {
    "nothing is switched on": STAGES.replace("requires_grad_(name in parts)", "requires_grad_(False)"),
    "another filter": STAGES.replace("lambda p: p.requires_grad", "lambda p: p.ndim > 1"),
    "two filters": STAGES + f"other = torch.optim.SGD({FILTER}, lr=0.1)\n",
    "one that clips": STAGES.replace(f"torch.optim.Adam({FILTER}, lr=0.1)", f"nn.utils.clip_grad_norm_({FILTER}, 1.0)"),
}


@pytest.mark.parametrize("name", EDITS)
def test_the_optimizer_gets_them_all(tmp_path: pathlib.Path, name: str) -> None:
    after = rewritten(tmp_path, "keep_what_is_thawed_later", EDITS[name], facts=FACTS)
    assert diff_lines(EDITS[name], after)[1:] == ["+opt = torch.optim.Adam(net.parameters(), lr=0.1)"]


@pytest.mark.parametrize("name", STAYS)
def test_what_is_not_sure_stays(tmp_path: pathlib.Path, name: str) -> None:
    assert rewritten(tmp_path, "keep_what_is_thawed_later", STAYS[name], facts=FACTS) == STAYS[name]


def test_nothing_was_seen_to_be_left_out(tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "keep_what_is_thawed_later", STAGES) == STAGES
