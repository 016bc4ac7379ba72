"""A weight that each forward clamps in place is written only where it is out of bounds."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

CRITIC = """import torch
from torch import nn

class Critic(nn.Module):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    @torch.no_grad()
    def bound(self):
        for weight in self.parameters():
            weight.clamp_(-self.limit, self.limit)

    def forward(self, x):
        self.bound()
        return self.layers(x)

critic = Critic(0.1)
loss = critic(fake).mean() - critic(real).mean()
loss.backward()
"""
FORMS = {
    "both": ("weight.clamp_(-self.limit, self.limit)", "((weight < -self.limit) | (weight > self.limit)).any()"),
    "named": ("weight.clamp_(max=self.limit, min=0)", "((weight > self.limit) | (weight < 0)).any()"),
    "one": ("weight.clamp_(min=0)", "(weight < 0).any()"),
    "by position": ("weight.clamp_(0)", "(weight < 0).any()"),
    "open below": ("weight.clip_(None, 1.0)", "(weight > 1.0).any()"),
    "its own method": ("weight.clamp_max_(1)", "(weight > 1).any()"),
    "relu": ("weight.relu_()", "(weight < 0).any()"),
}
STAYS = {
    "moves it each time": CRITIC.replace("weight.clamp_(-self.limit, self.limit)", "weight.mul_(self.limit)"),
    "recorded": CRITIC.replace("    @torch.no_grad()\n", ""),
    "bounds that are computed": CRITIC.replace("clamp_(-self.limit, self.limit)", "clamp_(min=weight.mean())"),
    "tested": CRITIC.replace(
        "            weight.clamp_(-self.limit, self.limit)",
        "            if weight.abs().max() > self.limit:\n                weight.clamp_(-self.limit, self.limit)",
    ),
    "its value is read": CRITIC.replace("weight.clamp_(-self", "weight = weight.clamp_(-self"),
}


@pytest.mark.parametrize(("call", "test"), FORMS.values(), ids=FORMS)
def test_clamps(call: str, test: str, tmp_path: pathlib.Path) -> None:
    """The call moves under its test; a second time nothing is left to do."""
    source = CRITIC.replace("weight.clamp_(-self.limit, self.limit)", call)
    after = rewritten(tmp_path, "clamp_what_is_outside", source, "loss.backward")
    assert [one[1:] for one in diff_lines(source, after)][1:] == [f"            if {test}:", f"                {call}"]
    assert rewritten(tmp_path, "clamp_what_is_outside", after, "loss.backward") == after


@pytest.mark.parametrize("source", STAYS.values(), ids=STAYS)
def test_what_stays(source: str, tmp_path: pathlib.Path) -> None:
    """A test that is there, a write that counts each time, one that is trained through."""
    assert rewritten(tmp_path, "clamp_what_is_outside", source, "loss.backward") == source
