"""The old policy's log-probabilities lose their graph where a rollout keeps them."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SAID = "Trying to backward through the graph a second time"
SOURCE = """import torch
from torch import nn
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 2)
    def act(self, obs):
        dist = torch.distributions.Categorical(logits=self.body(obs))
        action = dist.sample()
        return action, dist.log_prob(action)
    def evaluate(self, obs, action):
        return torch.distributions.Categorical(logits=self.body(obs)).log_prob(action)
class Rollout:
    def __init__(self):
        self.obs, self.actions, self.logp, self.rewards = [], [], [], []
    def add(self, obs, action, logp, reward):
        self.obs.append(obs)
        self.actions.append(action)
        self.logp.append(logp)
        self.rewards.append(reward)
    def batch(self):
        return {"obs": torch.stack(self.obs), "actions": torch.stack(self.actions), "logp": torch.stack(self.logp),
                "rewards": torch.stack(self.rewards)}
def collect(policy):
    rollout = Rollout()
    for _ in range(8):
        obs = torch.randn(4)
        action, logp = policy.act(obs)
        rollout.add(obs, action, logp, torch.rand(()))
    return rollout.batch()
def loss_of(policy, batch):
    logp = policy.evaluate(batch["obs"], batch["actions"])
    ratio = (logp - batch["logp"]).exp()
    return -(ratio * batch["rewards"]).mean()
policy = Policy()
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
for _ in range(2):
    batch = collect(policy)
    for _ in range(2):
        loss = loss_of(policy, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
FORMS = {
    "appended": (SOURCE, "self.logp.append(logp.detach())"),
    "a ratio in two lines": (
        SOURCE.replace("ratio = (logp - batch", "change = logp - batch").replace('"logp"]).exp()', '"logp"]\n    ratio = torch.exp(change)'),
        "self.logp.append(logp.detach())",
    ),
    "a field of a record": (
        "from dataclasses import dataclass\n"
        + SOURCE.replace("class Rollout:", "@dataclass\nclass Step:\n    action: object\n    logp: object\nclass Rollout:")
        .replace("self.logp.append(logp)", "self.steps.append(Step(action, logp))").replace("torch.stack(self.logp)", "self.steps"),
        "self.steps.append(Step(action, logp.detach()))",
    ),
    "an entry": (
        SOURCE.replace("self.logp.append(logp)", "self.kept.append(dict(logp=logp))").replace("torch.stack(self.logp)", "self.kept"),
        "self.kept.append(dict(logp=logp.detach()))",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "line"), FORMS.values(), ids=FORMS)
def test_it_is_detached_where_it_is_kept(source: str, line: str, tmp_path: pathlib.Path) -> None:
    """Whatever buffer or batch lies between; a second time nothing is left to do."""
    after = rewritten(tmp_path, "detach_old_log_probs", source, at="loss.backward()", message=SAID)
    assert changed_lines(source, after) == [line]
    assert rewritten(tmp_path, "detach_old_log_probs", after, at="loss.backward()", message=SAID) == after


@pytest.mark.parametrize(
    "source",
    [
        SOURCE.replace('(logp - batch["logp"]).exp()', 'batch["logp"]'),
        SOURCE.replace('(logp - batch["logp"]).exp()', 'batch["logp"] * (batch["rewards"] - logp).exp()'),
        SOURCE.replace("action, logp = policy.act(obs)", "with torch.no_grad():\n            action, logp = policy.act(obs)"),
        SOURCE.replace("self.logp.append(logp)", "self.logp.append(logp); self.other.logp.append(logp)"),
    ],
    ids=["no ratio: it is the loss", "a divergence from a reference", "acts without a graph", "kept twice"],
)  # fmt: skip
def test_others_are_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    """Where the log-probabilities of the rollout are the loss their graph is meant."""
    assert rewritten(tmp_path, "detach_old_log_probs", source, at="loss.backward()", message=SAID) == source


@pytest.mark.torch
def test_it_trains(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match=SAID):
        exec(SOURCE, {"__name__": "train"})  # noqa: S102 - the program of the test
    after = rewritten(tmp_path, "detach_old_log_probs", SOURCE, at="loss.backward()", message=SAID)
    exec(after, {"__name__": "train"})  # noqa: S102 - the program of the test
