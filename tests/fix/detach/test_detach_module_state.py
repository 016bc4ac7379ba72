"""A module that keeps its state in an attribute starts each step without the graph of the last one."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import diff_lines, failed, rewritten, write

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
    "a module that is replaced by an adapted one": (
        """import torch
from torch import nn


class Learner(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)

    def updates(self, gradients):
        return [-0.1 * one for one in gradients]

    def adapt(self, loss):
        gradients = torch.autograd.grad(loss, list(self.module.parameters()), create_graph=True)
        self.module = updated(self.module, self.updates(gradients))


def updated(module, updates):
    for name, one in zip(("weight", "bias"), updates):
        module._parameters[name] = module._parameters[name] + one
    return module


learner = Learner(nn.Linear(2, 1))
for x in torch.ones(3, 4, 2):
    learner.adapt(learner(x).mean())
    loss = learner(x).mean()
    loss.backward()
""",
        "loss.backward()",
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
    "a first value and a mean of it": (
        """import torch
from torch import nn
class Smooth(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.value = nn.Linear(3, 2), None
    def forward(self, x):
        h = self.layer(x)
        if self.value is None:
            self.value = h.mean(0)
            return h
        out = h - self.value
        self.value = 0.9 * self.value + 0.1 * h.mean(0)
        return out
torch.manual_seed(0)
net = Smooth(); opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 5, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "loss.backward()",
        [
            "-            self.value = h.mean(0)",
            "+            self.value = h.mean(0).detach()",
            "-        self.value = 0.9 * self.value + 0.1 * h.mean(0)",
            "+        self.value = (0.9 * self.value + 0.1 * h.mean(0)).detach()",
        ],
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

LOOP = """torch.manual_seed(0)
net = Net(); opt = torch.optim.Adam(net.parameters())
for x in torch.randn(3, 2, 5, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
"""
CELLS = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(3, 4), nn.GRUCell(4, 4)])
        self.lstm = nn.LSTMCell(3, 4)
        self.head = nn.Linear(4, 1)
        self.hidden = None
"""
RIGHT |= {
    "a table of entries that is rewritten under no_grad": (
        CELLS
        + """        self.last = {}
    def forward(self, x):
        y = self.head(self.cells[0](x[:, 0]))
        with torch.no_grad():
            self.last["mean"] = self.last.get("mean", 0.0) * 0.9 + y.mean()
        return y
"""
        + LOOP,
        "loss = net",
    ),
    "a list that is detached entry by entry": (
        CELLS
        + """    def forward(self, x):
        if self.hidden is None:
            self.hidden = [torch.zeros(2, 4), torch.zeros(2, 4)]
        for t in range(x.size(1)):
            y = x[:, t]
            for i, cell in enumerate(self.cells):
                y = cell(y, self.hidden[i])
                self.hidden[i] = y.detach()
        return self.head(y)
"""
        + LOOP,
        "loss = net",
    ),
}
FAST = """import torch
from torch import nn
class Fast(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.key, self.table = nn.Linear(dim, dim), None
    def begin(self, batch):
        self.table = torch.zeros(batch, 4)
    def write(self, x):
        self.table = 0.9 * self.table + self.key(x)
    def forward(self, xs):
        outs = []
        for x in xs.unbind(1):
            self.write(x)
            outs.append(self.table.tanh())
        return torch.stack(outs, 1)
net = Fast(4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net.begin(2)
for _ in range(3):
    loss = net(torch.randn(2, 5, 4)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
WRONG |= {
    "a method that ends its graph in a loop of another": (
        """import torch


class Trainer:
    def __init__(self, model):
        self.model = model
        self.state = torch.zeros(2, 4)
        self.opt = torch.optim.SGD(model.parameters(), lr=0.1)

    def micro_step(self, x):
        out, self.state = self.model(x, self.state)
        out.mean().backward()

    def run(self, batches):
        for x in batches:
            self.micro_step(x)
        self.opt.step()
""",
        "out.mean",
        ["+        self.state = self.state.detach()"],
    ),
    "a method that the forward runs in a loop": (
        FAST,
        "loss = net",
        ["+        if self.table is not None:", "+            self.table = self.table.detach()"],
    ),
    "a list that is filled for each layer": (
        CELLS
        + """    def forward(self, x):
        if self.hidden is None:
            self.hidden = [torch.zeros(2, 4), torch.zeros(2, 4)]
        for t in range(x.size(1)):
            y, fresh = x[:, t], []
            for cell, h in zip(self.cells, self.hidden):
                y = cell(y, h)
                fresh.append(y)
            self.hidden = fresh
        return self.head(y)
"""
        + LOOP,
        "loss = net",
        ["+        self.hidden = [part.detach() for part in self.hidden]"],
    ),
    "a list whose entries are replaced": (
        CELLS
        + """        self.states = [None] * 2
    def forward(self, x):
        for t in range(x.size(1)):
            y = x[:, t]
            for i, cell in enumerate(self.cells):
                self.states[i] = y = cell(y, self.states[i])
        return self.head(y)
"""
        + LOOP,
        "loss = net",
        ["+        self.states = [None if part is None else part.detach() for part in self.states]"],
    ),
    "a dictionary of pairs": (
        CELLS
        + """        self.memory = {"a": (torch.zeros(2, 4), torch.zeros(2, 4))}
    def forward(self, x):
        for t in range(x.size(1)):
            self.memory["a"] = self.lstm(x[:, t], self.memory["a"])
        return self.head(self.memory["a"][0])
"""
        + LOOP,
        "loss = net",
        ["+        self.memory = {key: tuple(part.detach() for part in parts) for key, parts in self.memory.items()}"],
    ),
    "a dictionary that is made anew": (
        CELLS
        + """        self.state = {"h": torch.zeros(2, 4), "c": torch.zeros(2, 4)}
    def forward(self, x):
        h, c = self.lstm(x[:, 0], (self.state["h"], self.state["c"]))
        self.state = {"h": h, "c": c}
        return self.head(h)
"""
        + LOOP,
        "loss = net",
        ["+        self.state = {key: part.detach() for key, part in self.state.items()}"],
    ),
    "two lists of one inner module": (
        """import torch
from torch import nn
class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList(nn.LSTMCell(a, b) for a, b in ((3, 4), (4, 4)))
    def start(self, n):
        return [torch.zeros(n, 4) for _ in self.cells], [torch.zeros(n, 4) for _ in self.cells]
    def forward(self, x, state):
        hs, cs = state
        new_h, new_c = [], []
        for cell, h, c in zip(self.cells, hs, cs):
            h, c = cell(x, (h, c))
            new_h.append(h); new_c.append(c)
            x = h
        return x, (new_h, new_c)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stack, self.head = Stack(), nn.Linear(4, 1)
        self.carry = None
    def forward(self, x):
        carry = self.stack.start(len(x)) if self.carry is None else self.carry
        y, self.carry = self.stack(x[:, 0], carry)
        return self.head(y)
"""
        + LOOP,
        "loss = net",
        ["+        self.carry = tuple([part.detach() for part in parts] for parts in self.carry)"],
    ),
    "a state that a trainer keeps": (
        """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.head = nn.LSTM(3, 4), nn.LSTM(4, 4), nn.Linear(4, 1)
    def forward(self, x, states):
        x, one = self.a(x, states[0])
        x, two = self.b(x, states[1])
        return self.head(x), [one, two]
class Trainer:
    def __init__(self, net):
        self.net, self.opt = net, torch.optim.Adam(net.parameters())
        self.states = [None, None]
    def step(self, x):
        y, self.states = self.net(x, self.states)
        self.opt.zero_grad(); y.pow(2).mean().backward(); self.opt.step()
torch.manual_seed(0)
trainer = Trainer(Net())
for x in torch.randn(3, 5, 2, 3):
    trainer.step(x)
""",
        "trainer.step(x)",
        ["+        self.states = [tuple(part.detach() for part in parts) for parts in self.states]"],
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


TASKS = """import torch
from torch import nn


class Learner:
    def __init__(self, net):
        self.net = net
        self.reset()

    def reset(self):
        self.fast = dict(self.net.named_parameters())

    def adapt(self, x):
        loss = torch.func.functional_call(self.net, self.fast, (x,)).square().mean()
        grads = torch.autograd.grad(loss, list(self.fast.values()), create_graph=True)
        self.fast = {name: w - 0.1 * g for (name, w), g in zip(self.fast.items(), grads)}
        return torch.func.functional_call(self.net, self.fast, (x,)).mean()


net = nn.Linear(3, 1)
learner = Learner(net)
opt = torch.optim.Adam(net.parameters())
for step in range(3):
    learner.reset()
    opt.zero_grad()
    for task in range(2):
        learner.adapt(torch.randn(5, 3)).backward()
    opt.step()
"""


def test_a_state_that_each_backward_begins_anew(tmp_path: pathlib.Path) -> None:
    """Where another loop resets it, the reset for each backward is the second thing to try."""
    program = write(tmp_path, {"train.py": TASKS})
    found = sorted(
        find_codemod("detach_module_state")(Context(program=program, incident=failed())), key=lambda one: -one.belief
    )
    after = splice(TASKS, found[-1].edits)
    assert after is not None
    assert diff_lines(TASKS, after) == ["+        learner.reset()"]
    assert found[-1].belief < found[0].belief
    again = rewritten(
        tmp_path,
        "detach_module_state",
        TASKS.replace("    for task in range(2):\n", "    for task in range(2):\n        learner.reset()\n"),
    )
    assert "learner.reset()\n        learner.reset()" not in again


SEQUENCES = """import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.start, self.h = nn.GRUCell(4, 8), nn.Linear(4, 8), None

    def reset(self):
        self.h = None

    def forward(self, x):
        if self.h is None:
            self.h = self.start(x)
        self.h = self.cell(x, self.h)
        return self.h.pow(2).mean()


net = Memory()
opt = torch.optim.Adam(net.parameters())
for epoch in range(2):
    net.reset()
    for x in torch.randn(6, 5, 4):
        loss = net(x)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


@pytest.mark.parametrize("step", ["opt.step()", "if True:\n            opt.step()"], ids=["each", "some"])
def test_what_begins_a_sequence_is_trained(step: str, tmp_path: pathlib.Path) -> None:
    """The first state keeps its graph; each step ends with a step of the optimizer, so that no reset belongs there."""
    source = SEQUENCES.replace("opt.step()", step)
    program = write(tmp_path, {"train.py": source})
    found = list(find_codemod("detach_module_state")(Context(program=program, incident=failed())))
    assert [diff_lines(source, splice(source, one.edits)) for one in found] == [
        ["+        else:", "+            self.h = self.h.detach()"]
    ]
