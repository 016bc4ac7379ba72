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
ROWS = """import torch
from torch import nn
from torch.distributions import Categorical
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 2)
    def dist(self, obs):
        return Categorical(logits=self.body(obs))
class Memory:
    def __init__(self):
        self.steps = []
    def add(self, obs, action, chance, reward):
        self.steps.append((obs, action, chance, reward))
    def batch(self):
        obs, action, chance, reward = (torch.stack(part) for part in zip(*self.steps))
        return {"obs": obs, "action": action, "old": chance.flatten(), "reward": reward}
def collect(policy):
    memory = Memory()
    for _ in range(8):
        obs = torch.randn(4)
        dist = policy.dist(obs)
        action = dist.sample()
        memory.add(obs, action, dist.log_prob(action), torch.rand(()))
    return memory.batch()
def loss_of(policy, part):
    now = policy.dist(part["obs"]).log_prob(part["action"])
    return -((now - part["old"]).clamp(-9, 9).exp() * part["reward"]).mean()
policy = Policy()
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
for _ in range(2):
    batch = collect(policy)
    for _ in range(2):
        for rows in torch.randperm(8).split(4):
            loss = loss_of(policy, {name: one[rows] for name, one in batch.items()})
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
_TAKEN = "obs, action, chance, reward = (torch.stack(part) for part in zip(*self.steps))"
_ADD = """    def add(self, obs, action, chance, reward):
        self.steps.append((obs, action, chance, reward))
"""
_TRIPLE = "import torch\nfrom collections import namedtuple\nStep = namedtuple('Step', 'obs action chance reward')\n"
_LOCAL = """import torch
from torch import nn
from torch.distributions import Categorical
policy = nn.Linear(4, 2)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
def collect():
    states, moves, chances = [], [], []
    for _ in range(8):
        state = torch.randn(4)
        dist = Categorical(logits=policy(state))
        move = dist.sample()
        states.append(state)
        moves.append(move)
        chances.append(dist.log_prob(move))
    return torch.stack(states), torch.stack(moves), torch.stack(chances)
def update(states, moves, before):
    for _ in range(3):
        now = Categorical(logits=policy(states)).log_prob(moves)
        ratio = torch.exp(now - before)
        loss = -(ratio * states.sum(-1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
states, moves, before = collect()
update(states, moves, before)
"""
_DIVERGENCE = """import torch
from torch import nn
from torch.distributions import Categorical
policy, other = nn.Linear(4, 2), nn.Linear(4, 2)
states, chances, others = [], [], []
for _ in range(8):
    state = torch.randn(4)
    dist = Categorical(logits=policy(state))
    move = dist.sample()
    states.append(state)
    chances.append(dist.log_prob(move))
    others.append(Categorical(logits=other(state)).log_prob(move))
chance, said = torch.stack(chances), torch.stack(others)
for _ in range(2):
    loss = -(chance * torch.stack(states).sum(-1)).mean() + torch.exp(said - chance).mean()
    loss.backward()
"""
_IN_ROW = "self.steps.append((obs, action, chance.detach(), reward))"
COLUMNS = {
    "rows, taken apart by a comprehension": (ROWS, _IN_ROW),
    "rows, taken apart by map": (
        ROWS.replace("(torch.stack(part) for part in zip(*self.steps))", "map(torch.stack, zip(*self.steps))"),
        _IN_ROW,
    ),
    "rows, stacked one by one": (
        ROWS.replace(
            _TAKEN,
            "obs, action, chance, reward = zip(*self.steps)\n        obs, action, reward = map(torch.stack, (obs, action, reward))",
        ).replace("chance.flatten()", "torch.stack(chance)"),
        _IN_ROW,
    ),
    "rows, read by place": (ROWS.replace("chance.flatten()", "torch.stack([row[2] for row in self.steps])"), _IN_ROW),
    "rows, read by a loop's names": (
        ROWS.replace("chance.flatten()", "torch.stack([lp for _, _, lp, _ in self.steps])"),
        _IN_ROW,
    ),
    "rows of all that a method is given": (
        ROWS.replace(_ADD, "    def add(self, *step):\n        self.steps.append(step)\n"),
        "memory.add(obs, action, dist.log_prob(action).detach(), torch.rand(()))",
    ),
    "records, taken apart as rows": (
        ROWS.replace("import torch\n", _TRIPLE, 1).replace(
            "((obs, action, chance, reward))", "(Step(obs, action, chance, reward))"
        ),
        "self.steps.append(Step(obs, action, chance.detach(), reward))",
    ),
    "records made by keyword": (
        ROWS.replace("import torch\n", _TRIPLE, 1).replace(
            "((obs, action, chance, reward))", "(Step(obs=obs, action=action, chance=chance, reward=reward))"
        ),
        "self.steps.append(Step(obs=obs, action=action, chance=chance.detach(), reward=reward))",
    ),
    "lists of a function, by other names": (_LOCAL, "chances.append(dist.log_prob(move).detach())"),
    "entries of a tensor": (
        _LOCAL.replace("moves, chances = [], [], []", "moves, chances = [], [], torch.zeros(8)")
        .replace("for _ in range(8)", "for at in range(8)")
        .replace("chances.append(dist.log_prob(move))", "chances[at] = dist.log_prob(move)")
        .replace("torch.stack(chances)", "chances"),
        "chances[at] = dist.log_prob(move).detach()",
    ),
}
_HANDED = """import torch
policy = torch.nn.Linear(4, 2)
def update(opt, states, actions, before):
    for _ in range(3):
        now = torch.distributions.Categorical(logits=policy(states)).log_prob(actions)
        loss = -(now - before).exp().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
for _ in range(2):
    states = torch.randn(8, 4)
    dist = torch.distributions.Categorical(logits=policy(states))
    actions = dist.sample()
    update(torch.optim.Adam(policy.parameters()), states, actions, dist.log_prob(actions))
"""
RIGHT = {
    "handed in by a rollout without a graph": _HANDED.replace(
        "dist.log_prob(actions))", "dist.log_prob(actions).detach())"
    ),
    "rows whose log-probabilities are the loss": ROWS.replace(
        '-((now - part["old"]).clamp(-9, 9).exp() * part["reward"])', '-(part["old"] * part["reward"])'
    ),
    "rows of a policy that acts under no_grad": ROWS.replace("def collect", "@torch.no_grad()\ndef collect"),
    "rows that keep it detached": ROWS.replace("chance, reward))", "chance.detach(), reward))"),
    "a column that is detached behind": ROWS.replace("chance.flatten()", "chance.detach().flatten()"),
    "the loss, beside a divergence from what another policy said": _DIVERGENCE,
}
FORMS = {
    "handed to the update": (
        _HANDED,
        "update(torch.optim.Adam(policy.parameters()), states, actions, dist.log_prob(actions).detach())",
    ),
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


@pytest.mark.parametrize(("source", "line"), [*FORMS.values(), *COLUMNS.values()], ids=[*FORMS, *COLUMNS])
def test_it_is_detached_where_it_is_kept(source: str, line: str, tmp_path: pathlib.Path) -> None:
    """Whatever buffer or batch lies between; a second time nothing is left to do."""
    after = rewritten(tmp_path, "detach_old_log_probs", source, at="loss.backward()", message=SAID)
    assert changed_lines(source, after) == [line]
    assert rewritten(tmp_path, "detach_old_log_probs", after, at="loss.backward()", message=SAID) == after


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_what_trains_or_has_no_graph_is_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    """A single pass over what was collected needs its graph; what is cut already needs nothing."""
    assert rewritten(tmp_path, "detach_old_log_probs", source, at="loss.backward()", message=SAID) == source


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
@pytest.mark.parametrize("source", [SOURCE, *(one for one, _ in COLUMNS.values())], ids=["a list of each", *COLUMNS])
def test_it_trains(source: str, tmp_path: pathlib.Path) -> None:
    """The program fails as it is, and runs once repaired."""
    pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match=f"{SAID}|modified by an inplace"):
        exec(source, {"__name__": "train"})  # noqa: S102 - the program of the test
    after = rewritten(tmp_path, "detach_old_log_probs", source, at="loss.backward()", message=SAID)
    exec(after, {"__name__": "train"})  # noqa: S102 - the program of the test
