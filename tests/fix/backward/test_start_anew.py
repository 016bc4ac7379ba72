"""What is filled for one backward starts anew for the next one."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

HEAD = """import torch
from torch import nn
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(8)]
"""
AGENT = """import torch
from torch import nn
from torch.distributions import Categorical


class Agent:
    def __init__(self):
        self.net = nn.Linear(3, 2)
        self.opt = torch.optim.Adam(self.net.parameters())
        self.log_probs, self.rewards = [], []

    def act(self, state):
        dist = Categorical(logits=self.net(state))
        action = dist.sample()
        self.log_probs.append(dist.log_prob(action))
        return action

    def learn(self):
        loss = -(torch.stack(self.log_probs) * torch.tensor(self.rewards)).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
{cleared}        return loss.item()


agent = Agent()
for episode in range(3):
    for _ in range(5):
        action = agent.act(torch.randn(3))
        agent.rewards.append(float(action))
    agent.learn()
{after}"""
WRONG = {
    "a sum over some batches": (
        HEAD
        + """total = 0.0
for step, (x, y) in enumerate(data):
    total += nn.functional.mse_loss(net(x), y)
    if (step + 1) % 4 == 0:
        opt.zero_grad()
        total.backward()
        opt.step()
        print(total.item())
""",
        ["+        total = 0.0"],
    ),
    "a sum that is shown at the end": (
        HEAD
        + """total = torch.zeros(())
for step, (x, y) in enumerate(data):
    total = total + nn.functional.mse_loss(net(x), y)
    if step % 4 == 3:
        (total / 4).backward()
        opt.step()
        opt.zero_grad()
print(total.item())
""",
        ["+        total = total.detach()"],
    ),
    "a sum of tasks that is made before the loop": (
        HEAD
        + """total = torch.zeros(1)
for epoch in range(3):
    for x, y in data:
        total = total + nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    total.backward()
    opt.step()
""",
        ["-total = torch.zeros(1)", "+    total = torch.zeros(1)"],
    ),
    "an attribute that another method sends backward": (
        """import torch
from torch import nn


class Learner:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.opt = torch.optim.SGD(self.net.parameters(), 0.1)
        self.total = 0.0

    def observe(self, x, y):
        self.total += nn.functional.mse_loss(self.net(x), y)

    def update(self):
        self.opt.zero_grad()
        self.total.backward()
        self.opt.step()


learner = Learner()
for step in range(8):
    learner.observe(torch.randn(4, 3), torch.randn(4, 1))
    if step % 4 == 3:
        learner.update()
""",
        ["+        self.total = 0.0"],
    ),
    "a list over some batches": (
        HEAD
        + """losses = []
for x, y in data:
    losses.append(nn.functional.mse_loss(net(x), y))
    if len(losses) % 4 == 0:
        torch.stack(losses).mean().backward()
        opt.step()
""",
        ["+        losses.clear()"],
    ),
    "an episode, with the rewards beside it": (
        AGENT.format(cleared="", after=""),
        ["+        self.log_probs.clear()", "+        self.rewards.clear()"],
    ),
    "an episode of which the rewards are cleared": (
        AGENT.format(cleared="        self.rewards = []\n", after=""),
        ["+        self.log_probs.clear()"],
    ),
    "lists that are made before the episodes": (
        """import torch
from torch import nn
torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
opt = torch.optim.Adam(policy.parameters(), lr=0.1)
log_probs, rewards = [], []
log_list = []
for episode in range(3):
    state = torch.randn(3)
    for t in range(4):
        dist = torch.distributions.Categorical(logits=policy(state))
        a = dist.sample()
        log_list.append(dist.log_prob(a))
        rewards.append(float(a))
        state = torch.randn(3)
    loss = -(torch.stack(log_list) * torch.tensor(rewards)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        ["+    log_list.clear()", "+    rewards.clear()"],
    ),
    "a buffer with a method that nothing calls": (
        """import torch
from torch import nn


class Memory:
    def __init__(self):
        self.values = []
        self.rewards = []

    def clear_memory(self):
        del self.values[:]
        del self.rewards[:]


def update(memory, opt):
    loss = (torch.stack(memory.values) - torch.tensor(memory.rewards)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()


memory, net = Memory(), nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
for episode in range(3):
    for _ in range(5):
        memory.values.append(net(torch.randn(3)).sum())
        memory.rewards.append(1.0)
    update(memory, opt)
""",
        ["+    memory.clear_memory()"],
    ),
}
RIGHT = {
    "a list that is emptied": AGENT.format(cleared="        self.log_probs, self.rewards = [], []\n", after=""),
    "a list that a slice empties": AGENT.format(cleared="        del self.log_probs[:]\n        del self.rewards[:]\n", after=""),
    "a list that the caller empties": AGENT.format(cleared="", after="    agent.log_probs.clear()\n    agent.rewards.clear()\n"),
    "a sum that each round makes": HEAD + """for epoch in range(3):
    total = 0.0
    for x, y in data:
        total += nn.functional.mse_loss(net(x), y)
    total.backward()
    opt.step()
""",
    "a sum for the log": HEAD + """running = 0.0
for step, (x, y) in enumerate(data):
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    opt.step()
    running += loss.item()
    if step % 4 == 3:
        print(running / 4)
""",
    "a memory that is drawn from": HEAD + """import random
memory = []
for step, (x, y) in enumerate(data):
    memory.append(net(x))
    if step > 2:
        batch = random.sample(memory, 2)
        torch.stack(batch).mean().backward()
""",
    "a bank of what each step has used": HEAD + """class Bank:
    def __init__(self):
        self.items = []

    def push(self, z):
        self.items.append(z)


bank = Bank()
for x, y in data:
    z = net(x)
    others = torch.cat(bank.items) if bank.items else z.detach()
    loss = (z - y).square().mean() - (z @ others.t()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    bank.push(z)
""",
    "a bank from which some steps learn": HEAD + """bank = []
for x, y in data:
    z = net(x)
    if len(bank) > 2:
        (z @ torch.cat(bank).t()).mean().backward()
        opt.step()
    bank.append(z)
""",
    "what each round adds and sends backward": HEAD + """total = 0.0
for x, y in data:
    total = total + nn.functional.mse_loss(net(x), y)
    total.backward()
""",
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path: pathlib.Path, source: str) -> None:
    """What is emptied somewhere, holds numbers, is a memory, or is used up in the round that fills it is left alone."""
    assert rewritten(tmp_path, "start_anew", source) == source


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path: pathlib.Path, source: str, wanted: list[str]) -> None:
    """The sum or list begins anew behind what reads it last; a second time nothing is left to do."""
    after = rewritten(tmp_path, "start_anew", source)
    assert diff_lines(source, after) == wanted
    assert rewritten(tmp_path, "start_anew", after) == after


@pytest.mark.parametrize("name", ["a sum over some batches", "a sum of tasks that is made before the loop"])
def test_no_step_is_cut_short(tmp_path: pathlib.Path, name: str) -> None:
    """The edit that detaches what a loop carries would leave a step the gradient of its last batch: it gives way."""
    source, _ = WRONG[name]
    assert rewritten(tmp_path, "detach_carried_state", source, ".backward()") == source
    assert rewritten(tmp_path, "detach_module_state", source, ".backward()") == source


OF_EACH = """import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.terms = nn.Linear(3, 3), []

    def forward(self, x):
        self.terms.append(self.fc(x).square().mean())
        return self.fc(x)


layers = nn.ModuleList([Layer(), Layer()])
optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
for x in torch.randn(3, 4, 3):
    for layer in layers:
        x = layer(x)
    loss = x.mean() + sum(sum(one.terms) for one in layers)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_lists_of_several_objects_have_no_one_name(tmp_path) -> None:
    """Behind the loop over them their variable means one of them, or nothing."""
    assert rewritten(tmp_path, "start_anew", OF_EACH, "loss.backward()") == OF_EACH
