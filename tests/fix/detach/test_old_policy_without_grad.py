"""A policy that acts for several epochs of updates does so without grad; one whose own log-probabilities are the loss does not."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SAID = "Trying to backward through the graph a second time"
HEAD = """import torch
from torch import nn
from torch.distributions import Categorical
torch.manual_seed(0)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.pi, self.v = nn.Linear(3, 8), nn.Linear(8, 2), nn.Linear(8, 1)

    def forward(self, x):
        h = self.body(x).tanh()
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


net = Policy()
opt = torch.optim.Adam(net.parameters())
"""
ROLLOUT = """def rollout(steps):
    xs, acts, logps, values = [], [], [], []
    for _ in range(steps):
        x = torch.randn(3)
        dist, value = net(x)
        act = dist.sample()
        xs.append(x)
        acts.append(act)
        logps.append(dist.log_prob(act))
        values.append(value)
    return torch.stack(xs), torch.stack(acts), torch.stack(logps), torch.stack(values)


"""
UPDATE = """def update(xs, acts, logps, values):
    gain = torch.ones(len(xs)) - values
    for _ in range(3):
        dist, now = net(xs)
        ratio = torch.exp(dist.log_prob(acts) - logps)
        loss = -(ratio * gain).mean() + (now - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


"""
MAIN = "for _ in range(2):\n    update(*rollout(8))\n"
LAYERS = """class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor, self.critic = nn.Linear(3, 2), nn.Linear(3, 1)

    def judge(self, x, act=None):
        dist = Categorical(logits=self.actor(x))
        if act is None:
            act = dist.sample()
        return act, dist.log_prob(act), self.critic(x).squeeze(-1)


agent = Agent()
adam = torch.optim.Adam(agent.parameters())
"""
SHARED = (
    LAYERS
    + """for _ in range(2):
    xs, acts, logps = torch.randn(8, 3), [], []
    for x in xs:
        act, logp, value = agent.judge(x)
        acts.append(act)
        logps.append(logp)
    acts, old = torch.stack(acts), torch.stack(logps)
    for epoch in range(3):
        _, new, value = agent.judge(xs, acts)
        log_ratio = new - old
        ratio = log_ratio.exp()
        loss = -ratio.mean() + (value - 1).pow(2).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
"""
)
METHODS = (
    LAYERS
    + """class PPO:
    def __init__(self):
        self.agent, self.rows = agent, []

    def act(self, x):
        dist = Categorical(logits=self.agent.actor(x))
        act = dist.sample()
        return act, dist.log_prob(act), self.agent.critic(x)

    def learn(self):
        xs, acts, old = (torch.stack(column) for column in zip(*self.rows))
        for _ in range(3):
            new = Categorical(logits=self.agent.actor(xs)).log_prob(acts)
            value = self.agent.critic(xs)
            loss = surrogate(new, old) + (value - 1).pow(2).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
        self.rows = []


def surrogate(new, old):
    return -(new - old).exp().clamp(0.8, 1.2).mean()


ppo = PPO()
for _ in range(2):
    for x in torch.randn(8, 3):
        act, logp, value = ppo.act(x)
        ppo.rows.append((x, act, logp))
    ppo.learn()
"""
)
BUFFER = (
    LAYERS
    + """acts, old = torch.zeros(8), torch.zeros(8)
for _ in range(2):
    xs = torch.randn(8, 3)
    for at in range(8):
        act, logp, value = agent.judge(xs[at])
        acts[at], old[at] = act, logp
    for epoch in range(3):
        for rows in torch.arange(8).split(4):
            _, new, value = agent.judge(xs[rows], acts[rows])
            loss = -torch.exp(new - old[rows]).mean() + (value - 1).pow(2).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
"""
)
INLINE = (
    LAYERS
    + """for _ in range(2):
    xs, acts, logps = torch.randn(8, 3), [], []
    for x in xs:
        dist = Categorical(logits=agent.actor(x))
        acts.append(dist.sample())
        logps.append(dist.log_prob(acts[-1]))
    acts, old = map(torch.stack, (acts, logps))
    for epoch in range(3):
        new = Categorical(logits=agent.actor(xs)).log_prob(acts)
        loss = -torch.exp(new - old).mean() + (agent.critic(xs) - 1).pow(2).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
"""
)
AT_ONCE = """for _ in range(2):
    xs = torch.randn(8, 3)
    dist, value = net(xs)
    acts = dist.sample()
    old_logp = dist.log_prob(acts)
    gain = torch.randn(8) - value
    for epoch in range(3):
        dist, now = net(xs)
        ratio = torch.exp(dist.log_prob(acts) - old_logp)
        loss = -(ratio * gain).mean() + (now - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
IN_FUNCTION = (
    LAYERS
    + """def collect():
    rows = []
    for x in torch.randn(8, 3):
        act, logp, value = agent.judge(x)
        rows.append((x, act, logp, value))
    xs, acts, logps, values = (torch.stack(column) for column in zip(*rows))
    return {"x": xs, "act": acts, "logp": logps, "gain": 1 - values}


def loss_of(batch):
    _, new, value = agent.judge(batch["x"], batch["act"])
    ratio = (new - batch["logp"]).exp()
    return -(ratio * batch["gain"]).mean() + (value - 1).pow(2).mean()


for _ in range(2):
    data = collect()
    for _ in range(3):
        loss = loss_of(data)
        adam.zero_grad()
        loss.backward()
        adam.step()
"""
)
RIGHT = {
    "the loss is made of the rollout's own log-probabilities in a function": HEAD + IN_FUNCTION.replace(
        'ratio = (new - batch["logp"]).exp()', 'ratio = batch["logp"] + new.detach()'),
    "the critic learns from the rollout's values in a function": HEAD + IN_FUNCTION.replace("_, new, value =", "_, new, _ =").replace(
        "(value - 1)", '(batch["gain"])'),
    "a temperature that is trained, before the updates": HEAD
    + AT_ONCE.replace("    for epoch", "    scale = net.v.weight.exp().mean()\n    for epoch").replace(
        "(ratio * gain)", "(ratio * gain * scale)"
    ),
    "a loop whose log-probabilities are the loss": HEAD + INLINE.replace("-torch.exp(new - old)", "-(old * new.exp().detach())"),
    "a loop that keeps what it computes detached": HEAD + INLINE.replace("(acts[-1]))", "(acts[-1]).detach())"),
    "without grad already": HEAD + "@torch.no_grad()\n" + ROLLOUT + UPDATE + MAIN,
    "called without grad": HEAD + ROLLOUT + UPDATE
        + "for _ in range(2):\n    with torch.no_grad():\n        rows = rollout(8)\n    update(*rows)\n",
    "REINFORCE: the collected log-probabilities are the loss": HEAD + ROLLOUT + """def update(xs, acts, logps, values):
    for _ in range(3):
        loss = -(logps * (1 - values.detach())).mean() + (values - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""" + MAIN,
    "actor-critic beside an entropy of a new forward": HEAD + ROLLOUT + """def update(xs, acts, logps, values):
    for _ in range(3):
        dist, now = net(xs)
        loss = -(logps * (1 - now.detach())).mean() + (now - 1).pow(2).mean() - dist.entropy().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""" + MAIN,
    "the critic learns from the values of the rollout": HEAD + ROLLOUT + UPDATE.replace("dist, now", "dist, _").replace(
        "(now - 1)", "(values - 1)") + MAIN,
    "the critic learns from the values of the rollout, by a backward of its own": HEAD + ROLLOUT + UPDATE.replace(
        "        opt.step()\n", "        (values - 1).pow(2).mean().backward()\n        opt.step()\n") + MAIN,
    "an encoder that only the rollout runs": HEAD + "encoder = nn.Linear(3, 3)\nopt.add_param_group({'params': encoder.parameters()})\n"
        + ROLLOUT.replace("x = torch.randn(3)", "x = encoder(torch.randn(3))") + UPDATE + MAIN,
    "all that is kept is detached; a state is not": HEAD + ROLLOUT.replace(
        "dist.log_prob(act))", "dist.log_prob(act).detach())").replace("append(value)", "append(value.item())").replace(
        "torch.stack(values)", "torch.tensor(values)") + UPDATE + MAIN,
    "another loss of the program is made of a rollout": HEAD + ROLLOUT + UPDATE + """xs, acts, logps, values = rollout(8)
(-logps.mean()).backward()
opt.step()
""" + MAIN,
    "a softmax written by hand is no ratio": HEAD + """def scores(x):
    return net.pi(net.body(x)).log_softmax(-1)
def once(x):
    return scores(x).mean()
kept = once(torch.randn(2, 3))
for _ in range(3):
    logits = scores(torch.randn(2, 3))
    top = logits.max().detach()
    loss = (logits - top).exp().sum() + kept
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}  # fmt: skip
WRONG = {
    "a function that acts": (HEAD + ROLLOUT + UPDATE + MAIN, ["+@torch.no_grad()"]),
    "a call of what the loss runs as well": (HEAD + SHARED, [
        "-        act, logp, value = agent.judge(x)", "+        with torch.no_grad():",
        "+            act, logp, value = agent.judge(x)"]),
    "a call that fills a buffer": (HEAD + BUFFER, [
        "-        act, logp, value = agent.judge(xs[at])", "+        with torch.no_grad():",
        "+            act, logp, value = agent.judge(xs[at])"]),
    "a loop that acts line by line": (HEAD + INLINE, [
        "-    for x in xs:", "-        dist = Categorical(logits=agent.actor(x))", "-        acts.append(dist.sample())",
        "-        logps.append(dist.log_prob(acts[-1]))", "+    with torch.no_grad():", "+        for x in xs:",
        "+            dist = Categorical(logits=agent.actor(x))", "+            acts.append(dist.sample())",
        "+            logps.append(dist.log_prob(acts[-1]))"]),
    "lines that act on all states at once": (HEAD + AT_ONCE, [
        "-    old_logp = dist.log_prob(acts)", "-    gain = torch.randn(8) - value",
        "+    old_logp = dist.log_prob(acts).detach()", "+    gain = (torch.randn(8) - value).detach()"]),
    "a ratio whose forward a function runs": (HEAD + IN_FUNCTION, ["+@torch.no_grad()"]),
    "methods, with the ratio in a function": (HEAD + METHODS, ["+    @torch.no_grad()"]),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_rollouts_that_train_stay(source: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where a loss may learn from what was collected, or where it has no graph."""
    assert rewritten(tmp_path, "old_policy_without_grad", source, "loss.backward()", message=SAID) == source


@pytest.mark.parametrize(("source", "changes"), WRONG.values(), ids=WRONG)
def test_the_old_policy_acts_without_grad(source: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """What acts runs under no_grad; a second time nothing is left to do."""
    after = rewritten(tmp_path, "old_policy_without_grad", source, "loss.backward()", message=SAID)
    assert diff_lines(source, after) == changes
    assert rewritten(tmp_path, "old_policy_without_grad", after, "loss.backward()", message=SAID) == after


def test_the_buffers_of_a_rollout_are_no_carried_state(tmp_path: pathlib.Path) -> None:
    """Detached behind the first update, they would still take the gradient out of that one: the other codemod is silent."""
    source = HEAD + BUFFER
    assert rewritten(tmp_path, "detach_carried_state", source, "loss.backward()", message=SAID) == source


@pytest.mark.slow
@pytest.mark.parametrize("source", [one for one, _ in WRONG.values()], ids=WRONG)
def test_the_result_trains(source: str, tmp_path: pathlib.Path) -> None:
    """The program fails as it is and runs once repaired."""
    after = rewritten(tmp_path, "old_policy_without_grad", source, "loss.backward()", message=SAID)
    broken = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert SAID in broken.stderr
    subprocess.run([sys.executable, "-c", after], check=True)


SPREAD = """import torch
from torch import nn

agent = nn.Linear(3, 2)

def collect(steps):
    xs, acts, logps = [], [], []
    for x in torch.randn(steps, 3):
        policy = torch.distributions.Categorical(logits=agent(x))
        act = policy.sample()
        xs.append(x), acts.append(act), logps.append(policy.log_prob(act))
    return [torch.stack(one) for one in (xs, acts, logps)]

def surrogate(agent, xs, acts, old):
    new = torch.distributions.Categorical(logits=agent(xs)).log_prob(acts)
    return -((new - old).exp() * 0.5).mean()

for _ in range(2):
    batch = collect(4)
    for _ in range(3):
        loss = surrogate(agent, *batch)
        loss.backward()
"""


def test_a_batch_that_is_spread_over_the_parameters(tmp_path: pathlib.Path) -> None:
    """`surrogate(agent, *batch)`: the old log-probabilities are among what the rollout gave."""
    after = rewritten(tmp_path, "old_policy_without_grad", SPREAD, "loss.backward()", message="a second time")
    assert diff_lines(SPREAD, after) == ["+@torch.no_grad()"]


TEMPLATE = (
    LAYERS
    + """class Algorithm:
    def __init__(self):
        self.agent, self.rows = agent, []

    def collect(self):
        self.rows = []
        for x in torch.randn(8, 3):
            act, logp, _ = self.agent.judge(x)
            self.rows.append((x, act, logp))

    def learn(self):
        for _ in range(2):
            self.collect()
            self.train()


class PPO(Algorithm):
    def train(self):
        xs, acts, old = (torch.stack(column) for column in zip(*self.rows))
        for _ in range(3):
            _, new, value = self.agent.judge(xs, acts)
            loss = -(new - old).exp().mean() + (value - 1).pow(2).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()


PPO().learn()
"""
)


def test_a_base_class_acts_and_a_derived_one_trains(tmp_path: pathlib.Path) -> None:
    """The method that acts goes without grad, not the one that trains through what a derived class adds."""
    after = rewritten(tmp_path, "old_policy_without_grad", HEAD + TEMPLATE, "loss.backward()", message=SAID)
    at = after.splitlines().index("    @torch.no_grad()")
    assert after.splitlines()[at + 1] == "    def collect(self):"
    assert len(diff_lines(HEAD + TEMPLATE, after)) == 1
