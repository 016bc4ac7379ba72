"""A module that keeps its state in an attribute starts each step without the graph of the last one."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "reset in the loop": (
        """import torch
from torch import nn


class LeakyNeuron(nn.Module):
    def __init__(self):
        super().__init__()
        self.decay = nn.Parameter(torch.tensor(2.0))
        self.reset()

    def reset(self):
        self.membrane = torch.zeros(())

    def forward(self, current):
        self.membrane = self.decay.sigmoid() * self.membrane + current
        return torch.sigmoid(5 * (self.membrane - 1))


torch.manual_seed(0)
encoder, neuron = nn.Linear(4, 3), LeakyNeuron()
optimizer = torch.optim.SGD([*encoder.parameters(), *neuron.parameters()], lr=0.1)
for frames, target in zip(torch.rand(3, 5, 8, 4), torch.rand(3, 8, 3)):
    neuron.reset()
    rate = torch.stack([neuron(encoder(frame)) for frame in frames]).mean(0)
    loss = nn.functional.mse_loss(rate, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        "loss.backward()",
    ),
    "detached as it is stored": (
        """import torch
from torch import nn
class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 1)
        self.hidden = None
    def forward(self, x):
        out, self.hidden = self.rnn(x, self.hidden)
        self.hidden = self.hidden.detach()
        return self.head(out)
torch.manual_seed(0)
net = Stateful(); opt = torch.optim.Adam(net.parameters())
for x in torch.randn(3, 2, 5, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "loss = net",
    ),
    "a fresh state in each call": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Net(nn.Module):
    def forward(self, x):
        self.h = torch.zeros(2)
        self.h = self.h + x
        return self.h
""",
        None,
    ),
    "an attribute that is only kept": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
    def forward(self, x):
        self.last = self.fc(x)
        return x
""",
        None,
    ),
}
WRONG = {
    "a module with a reset": (
        """import torch
from torch import nn


class LeakyNeuron(nn.Module):
    def __init__(self):
        super().__init__()
        self.decay = nn.Parameter(torch.tensor(2.0))
        self.reset()

    def reset(self):
        self.membrane = torch.zeros(())

    def forward(self, current):
        self.membrane = self.decay.sigmoid() * self.membrane + current
        return torch.sigmoid(5 * (self.membrane - 1))


torch.manual_seed(0)
encoder, neuron = nn.Linear(4, 3), LeakyNeuron()
optimizer = torch.optim.SGD([*encoder.parameters(), *neuron.parameters()], lr=0.1)
for frames, target in zip(torch.rand(3, 5, 8, 4), torch.rand(3, 8, 3)):
    rate = torch.stack([neuron(encoder(frame)) for frame in frames]).mean(0)
    loss = nn.functional.mse_loss(rate, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        "loss.backward()",
        ["+    neuron.reset()"],
    ),
    "a GRU that starts from None": (
        """import torch
from torch import nn
class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 1)
        self.hidden = None
    def forward(self, x):
        out, self.hidden = self.rnn(x, self.hidden)
        return self.head(out)
torch.manual_seed(0)
net = Stateful(); opt = torch.optim.Adam(net.parameters())
for x in torch.randn(3, 2, 5, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "loss = net",
        ["+        self.hidden = self.hidden.detach()"],
    ),
    "a memory that the output reads": (
        """import torch
from torch import nn
class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.write, self.head = nn.Linear(6, 3), nn.Linear(3, 1)
        self.memory = torch.zeros(2, 3)
    def forward(self, x):
        mixed = torch.tanh(self.write(torch.cat([x, self.memory], 1)))
        self.memory = 0.5 * self.memory + 0.5 * mixed
        return self.head(self.memory)
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.mem = Memory()
    def forward(self, x):
        return self.mem(x)
def fit(net, opt, xs):
    for x in xs:
        loss = net(x).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
torch.manual_seed(0)
net = Agent(); opt = torch.optim.Adam(net.parameters())
fit(net, opt, torch.randn(3, 2, 3))
""",
        "loss = net",
        ["+        self.memory = self.memory.detach()"],
    ),
    "two states of a cell": (
        """import torch
from torch import nn
class L(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(3, 4), nn.Linear(4, 1)
        self.h = self.c = None
    def forward(self, xs):
        if self.h is None:
            self.h, self.c = torch.zeros(2, 4), torch.zeros(2, 4)
        outs = []
        for x in xs:
            self.h, self.c = self.cell(x, (self.h, self.c))
            outs.append(self.head(self.h))
        return torch.stack(outs)
torch.manual_seed(0)
net = L(); opt = torch.optim.Adam(net.parameters())
for x in torch.randn(3, 5, 2, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "loss = net",
        ["+        self.c = self.c.detach()", "+        self.h = self.h.detach()"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "detach_module_state", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "detach_module_state", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "detach_module_state", after, still) == after
