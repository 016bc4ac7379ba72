"""An old policy is a constant: the first step's gradients, of which half cancelled, are not held against the edit that says so."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests import forked
from tests.verification.programs import gradfix

PPO = """import torch
from torch import nn
torch.manual_seed(0)
policy, value = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*policy.parameters(), *value.parameters()], lr=0.1)

def collect():
    obs = torch.randn(32, 4)
    dist = torch.distributions.Categorical(logits=policy(obs))
    action = dist.sample()
    return obs, action, dist.log_prob(action), (action == (obs[:, 0] > 0).long()).float()

for _ in range(2):
    obs, action, old, reward = collect()
    for _ in range(2):
        scores = value(obs).squeeze(-1)
        ratio = (torch.distributions.Categorical(logits=policy(obs)).log_prob(action) - old).exp()
        loss = -(ratio * (reward - scores.detach())).mean() + (scores - reward).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.slow
def test_a_policy_that_acts_with_its_graph(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(PPO)
    done = gradfix(tmp_path, "run", "--fix", "--no-probe", "--format", "json", "--", forked.python(), "train.py")
    assert json.loads(done.stdout)["status"] == "verified"
    assert "@torch.no_grad()\ndef collect" in (tmp_path / "train.py").read_text()
