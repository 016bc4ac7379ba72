"""What steps the scaler goes behind what unscales, in the list that orders both."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

COMMANDS = """import torch
from torch import nn

class Backward:
    def __call__(self, s):
        s["scaler"].scale(s["loss"]).backward()

class Clip:
    def __call__(self, s):
        s["scaler"].unscale_(s["opt"])
        nn.utils.clip_grad_norm_(s["net"].parameters(), 1.0)

class Step:
    def __call__(self, s):
        s["scaler"].step(s["opt"])
        s["scaler"].update()

class Report:
    def __call__(self, s):
        print(s["loss"])

net = nn.Linear(2, 1)
state = {"net": net, "opt": torch.optim.SGD(net.parameters()), "scaler": torch.amp.GradScaler("cpu")}
program = [Backward(), Step(), Clip(), Report()]
for batch in batches:
    for command in program:
        command(state)
"""
STAYS = {
    "in order": COMMANDS.replace("Step(), Clip()", "Clip(), Step()"),
    "nothing unscales": COMMANDS.replace('        s["scaler"].unscale_(s["opt"])\n', ""),
    "something between them": COMMANDS.replace("Clip(), Report()]", "Report(), Clip()]"),
    "two that step": COMMANDS.replace("Clip(), Report()]", "Clip(), Step()]"),
}


def test_the_step_comes_last(tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "step_behind_unscale_in_list", COMMANDS, 's["scaler"].step')
    assert diff_lines(COMMANDS, after)[1:] == ["+program = [Backward(), Clip(), Step(), Report()]"]


@pytest.mark.parametrize("name", STAYS)
def test_what_is_not_sure_stays(tmp_path: pathlib.Path, name: str) -> None:
    assert rewritten(tmp_path, "step_behind_unscale_in_list", STAYS[name], 's["scaler"].step') == STAYS[name]
