"""A forward that only chooses actions and fills a memory runs without grad."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SAID = "one of the variables needed for gradient computation has been modified by an inplace operation"
HEAD = """import random
from collections import deque

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.q = nn.GRUCell(3, 8), nn.Linear(8, 2)

    def forward(self, x, h):
        h = self.cell(x, h)
        return self.q(h), h


class Replay:
    def __init__(self):
        self.rows, self.at = [None] * 50, 0

    def push(self, *row):
        self.rows[self.at % 50] = row
        self.at += 1

    def sample(self, n):
        picks = random.sample(self.rows[: min(self.at, 50)], n)
        return [torch.cat(column) for column in zip(*picks)]


def learn(net, opt, batch):
    x, h, a = batch
    q, _ = net(x, h)
    loss = q.gather(1, a[:, None]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()


torch.manual_seed(0)
random.seed(0)
net = Net()
opt = torch.optim.Adam(net.parameters())
h = torch.zeros(1, 8)
"""
CLASS = (
    HEAD
    + """replay = Replay()
for step in range(30):
    x = torch.randn(1, 3)
    FORWARD
    a = q.argmax(1)
    replay.push(x, h, a)
    h = after
    if step > 10:
        learn(net, opt, replay.sample(6))
"""
)
RIGHT = {
    "under no_grad": CLASS.replace("FORWARD", "with torch.no_grad():\n        q, after = net(x, h)"),
    "log probabilities of a policy, in a list that is emptied": HEAD + """def update(kept):
    loss = -torch.cat(kept).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
kept = []
for step in range(30):
    q, h = net(torch.randn(1, 3), h)
    kept.append(q.log_softmax(1)[:, 0])
    if step % 5 == 4:
        update(kept)
        kept.clear()
""",
    "a memory, and a list that the loss is made of": HEAD + """replay, kept = Replay(), []
def update(kept):
    loss = -torch.cat(kept).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
for step in range(30):
    x = torch.randn(1, 3)
    q, h = net(x, h)
    kept.append(q.log_softmax(1)[:, 0])
    replay.push(x, h)
    if step % 5 == 4:
        update(kept)
        kept = []
""",
    "an output that the loss reads": HEAD + """replay = Replay()
for step in range(30):
    x = torch.randn(1, 3)
    q, after = net(x, h)
    replay.push(x, h, q.argmax(1))
    h = after
    loss = q.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "nothing is stored": HEAD + """for step in range(30):
    q, h = net(torch.randn(1, 3), h)
    print(q.argmax().item())
    learn(net, opt, (torch.randn(4, 3), torch.zeros(4, 8), torch.zeros(4, dtype=torch.long)))
""",
}  # fmt: skip
WRONG = {
    "a class with a ring of rows": (
        CLASS.replace("FORWARD", "q, after = net(x, h)"),
        ["-    q, after = net(x, h)", "+    with torch.no_grad():", "+        q, after = net(x, h)"],
    ),
    "a deque, and a policy that draws": (
        HEAD + """memory = deque(maxlen=50)
for step in range(30):
    x = torch.randn(1, 3)
    logits, after = net(
        x,
        h,
    )
    a = torch.distributions.Categorical(logits=logits).sample()
    memory.append((x, h, a))
    h = after
    if step > 10:
        rows = random.sample(memory, 6)
        learn(net, opt, [torch.cat(column) for column in zip(*rows)])
""",
        ["-    logits, after = net(", "-        x,", "-        h,", "-    )", "+    with torch.no_grad():",
         "+        logits, after = net(", "+            x,", "+            h,", "+        )"],
    ),
    "a loss in the loop itself": (
        HEAD + """replay = deque(maxlen=8)
for step in range(6):
    x = torch.randn(1, 3)
    q, after = net(x, h)
    replay.append((x, h, q.argmax(1)))
    h = after
    if step > 3:
        xs, hs, actions = map(torch.cat, zip(*replay))
        loss = net(xs, hs)[0].gather(1, actions[:, None]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
        ["-    q, after = net(x, h)", "+    with torch.no_grad():", "+        q, after = net(x, h)"],
    ),
    "an agent that acts in a method": (
        HEAD + """class Agent:
    def __init__(self):
        self.net, self.opt = net, opt

    def act(self, x, h):
        q, h = self.net(x, h)
        return q.argmax(1), h

    def learn(self, batch):
        learn(self.net, self.opt, batch)


agent, replay = Agent(), Replay()
for step in range(30):
    x = torch.randn(1, 3)
    a, after = agent.act(x, h)
    replay.push(x, h, a)
    h = after
    if step > 10:
        agent.learn(replay.sample(6))
""",
        ["-    a, after = agent.act(x, h)", "+    with torch.no_grad():", "+        a, after = agent.act(x, h)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where a loss reads what the forward gives, or where nothing outlives the step."""
    assert rewritten(tmp_path, "act_without_grad", source, "loss.backward()", message=SAID) == source


@pytest.mark.parametrize(("source", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The forward stands under no_grad; a second time nothing is left to do."""
    after = rewritten(tmp_path, "act_without_grad", source, "loss.backward()", message=SAID)
    assert diff_lines(source, after) == changes
    assert rewritten(tmp_path, "act_without_grad", after, "loss.backward()", message=SAID) == after
