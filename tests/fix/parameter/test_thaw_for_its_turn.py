"""A network that is frozen for another's update is thawed before its own forward."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

DUE = {"live_frozen_optimizer": "yes"}
TOP = """import torch
from torch import nn

def trainable(module, on):
    for p in module.parameters():
        p.requires_grad = on

painter, critic = nn.Linear(4, 6), nn.Linear(6, 1)
judging = torch.optim.Adam(critic.parameters())
for _ in range(3):
    fake = painter(torch.randn(8, 4))
    scores = critic(fake.detach())
    loss = scores.mean()
    loss.backward()
    judging.step()
"""
REST = """    (-critic(fake).mean()).backward()
"""
LOOP = "    for p in critic.parameters():\n        p.requires_grad_(False)\n"
FROZEN = {
    "a helper": ("    trainable(critic, False)\n", "trainable(critic, True)"),
    "a helper by keyword": ("    trainable(critic, on=False)\n", "trainable(critic, on=True)"),
    "a method": ("    critic.requires_grad_(False)\n", "critic.requires_grad_(True)"),
    "a loop": (LOOP, "critic.requires_grad_(True)"),
}
STEPS = """import torch
from torch import nn

def trainable(module, on):
    for p in module.parameters():
        p.requires_grad = on

class Trainer:
    def __init__(self):
        self.painter, self.critic = nn.Linear(4, 6), nn.Linear(6, 1)

    def judge(self, real):
        scores = self.critic(real)
        loss = scores.mean()
        loss.backward()

    def paint(self, x):
        trainable(self.critic, False)
        self.critic(self.painter(x)).mean().backward()
"""


@pytest.mark.parametrize(("freeze", "thaw"), FROZEN.values(), ids=FROZEN)
def test_it_is_thawed_before_its_forward(tmp_path: pathlib.Path, freeze: str, thaw: str) -> None:
    source = TOP + freeze + REST
    after = rewritten(tmp_path, "thaw_for_its_turn", source, "loss.backward", facts=DUE)
    assert diff_lines(source, after) == [f"+    {thaw}"]
    assert after.index(thaw) < after.index("scores = critic")
    assert rewritten(tmp_path, "thaw_for_its_turn", after, "loss.backward", facts=DUE) == after


def test_methods_of_a_trainer(tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "thaw_for_its_turn", STEPS, "loss.backward", facts=DUE)
    assert diff_lines(STEPS, after) == ["+        trainable(self.critic, True)"]


@pytest.mark.parametrize(
    ("source", "facts"),
    [
        (TOP + FROZEN["a helper"][0] + REST, {}),
        (TOP + FROZEN["a helper"][0] + REST + "    trainable(critic, True)\n", DUE),
        (TOP + "    painter.requires_grad_(False)\n" + REST, DUE),
    ],
    ids=["no turn is known", "thawed", "another network"],
)
def test_nothing(tmp_path: pathlib.Path, source: str, facts: dict[str, str]) -> None:
    assert rewritten(tmp_path, "thaw_for_its_turn", source, "loss.backward", facts=facts) == source
