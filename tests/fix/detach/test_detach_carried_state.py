"""What a training loop carries from step to step is detached between two steps."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "detached at the use": (
        """import torch
from torch import nn

torch.manual_seed(0)
cell, readout = nn.GRU(6, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *readout.parameters()], lr=0.01)
signal = torch.rand(60, 4, 6)
hidden = torch.zeros(1, 4, 8)
for chunk in signal.split(20):
    output, hidden = cell(chunk, hidden.detach())
    loss = readout(output).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        "loss.backward()",
    ),
    "an object of the program": (
        """import torch
class Ensemble:
    def __init__(self):
        self.z = torch.zeros(4, 2)
    def targets(self, i):
        return self.z[i]
    def update(self, i, p):
        self.z[i] = 0.6 * self.z[i] + 0.4 * p
net = torch.nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
ensemble = Ensemble()
for i, x in enumerate(torch.randn(4, 3)):
    p = net(x).softmax(-1)
    loss = (p - ensemble.targets(i)).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    ensemble.update(i, p)
""",
        "loss.backward()",
    ),
    "a new state for each step": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
rnn = nn.GRU(3, 2)
for chunk in torch.randn(3, 4, 2, 3):
    h = torch.zeros(1, 2, 2)
    out, h = rnn(chunk, h)
    loss = out.sum()
    loss.backward()
""",
        "loss.backward",
    ),
    "a running number": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
total = 0.0
for x in torch.randn(3, 4, 3):
    loss = net(x).sum()
    total += loss.item()
    loss.backward()
""",
        "loss.backward",
    ),
    "a running sum that no loss reads": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
total = 0.0
for x in torch.randn(3, 4, 3):
    loss = net(x).sum()
    total += loss
    loss.backward()
""",
        "loss.backward",
    ),
    "gradients through time in one step": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
cell = nn.GRUCell(3, 2)
h = torch.zeros(4, 2)
for t in range(3):
    h = cell(x, h)
loss = h.sum()
loss.backward()
""",
        "loss.backward",
    ),
    "a function that detaches": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
rnn = nn.LSTM(3, 2)
def cut(s):
    return tuple(p.detach() for p in s)
s = None
for chunk in torch.randn(3, 4, 2, 3):
    out, s = rnn(chunk, s)
    s = cut(s)
    loss = out.sum()
    loss.backward()
""",
        "loss.backward",
    ),
}
WRONG = {
    "an average that begins with the first loss": (
        """import torch
from torch import nn
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def epoch(data):
    mean = None
    for x, y in data:
        loss = (net(x) - y).abs().mean()
        mean = loss if mean is None else 0.9 * mean + 0.1 * loss
        opt.zero_grad()
        mean.backward()
        opt.step()
    return mean.item()
""",
        "mean.backward()",
        [
            "-        mean = loss if mean is None else 0.9 * mean + 0.1 * loss",
            "+        mean = loss.detach() if mean is None else 0.9 * mean + 0.1 * loss.detach()",
            "-        mean.backward()",
            "+        loss.backward()",
        ],
    ),
    "a GRU": (
        """import torch
from torch import nn

torch.manual_seed(0)
cell, readout = nn.GRU(6, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *readout.parameters()], lr=0.01)
signal = torch.rand(60, 4, 6)
hidden = torch.zeros(1, 4, 8)
for chunk in signal.split(20):
    output, hidden = cell(chunk, hidden)
    loss = readout(output).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        "loss.backward()",
        ["-    output, hidden = cell(chunk, hidden)", "+    output, hidden = cell(chunk, hidden.detach())"],
    ),
    "a running average": (
        """import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
smoothed = torch.zeros(())
for inputs, target in zip(torch.rand(4, 8, 5), torch.rand(4, 8, 1)):
    loss = nn.functional.mse_loss(model(inputs), target)
    smoothed = 0.9 * smoothed + 0.1 * loss
    optimizer.zero_grad()
    (loss / (1 + smoothed)).backward()
    optimizer.step()
""",
        ".backward()",
        ["-    smoothed = 0.9 * smoothed + 0.1 * loss", "+    smoothed = 0.9 * smoothed + 0.1 * loss.detach()"],
    ),
    "a model with an LSTM, in a function": (
        """import torch
from torch import nn
class CharModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 8); self.rnn = nn.LSTM(8, 8, batch_first=True); self.head = nn.Linear(8, 10)
    def forward(self, x, state=None):
        out, state = self.rnn(self.embed(x), state)
        return self.head(out), state
def train(model, data, opt):
    for epoch in range(2):
        state = None
        for i in range(0, 12, 4):
            x, y = data[:, i:i+4], data[:, i+1:i+5]
            logits, state = model(x, state)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
torch.manual_seed(0)
m = CharModel()
train(m, torch.randint(10, (2, 13)), torch.optim.Adam(m.parameters()))
""",
        "loss.backward()",
        ["+            state = tuple(part.detach() for part in state)"],
    ),
    "a helper that makes the step": (
        """import torch
from torch import nn
torch.manual_seed(0)
cell, head = nn.GRUCell(3, 5), nn.Linear(5, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
def step(x, h):
    h = cell(x, h)
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item(), h
h = torch.zeros(2, 5)
for x in torch.randn(3, 2, 3):
    value, h = step(x, h)
""",
        "loss.backward()",
        ["-    value, h = step(x, h)", "+    value, h = step(x, h.detach())"],
    ),
    "backward on the running sum": (
        """import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
total_loss = 0
for x in torch.randn(3, 2, 3):
    opt.zero_grad()
    loss = model(x).pow(2).mean()
    total_loss += loss
    total_loss.backward()
    opt.step()
print(total_loss)
""",
        "total_loss.backward()",
        [
            "-    total_loss += loss",
            "-    total_loss.backward()",
            "+    total_loss += loss.detach()",
            "+    loss.backward()",
        ],
    ),
    "a memory bank": (
        """import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
enc = nn.Linear(3, 4)
opt = torch.optim.Adam(enc.parameters(), lr=0.1)
bank = []
for x in torch.randn(3, 5, 3):
    z = F.normalize(enc(x), dim=1)
    z2 = F.normalize(enc(x + 0.1), dim=1)
    negatives = torch.cat(bank) if bank else z2.detach()
    loss = -(z * z2).sum(1).mean() + (z @ negatives.T).logsumexp(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    bank.append(z2)
""",
        "loss.backward()",
        ["-    bank.append(z2)", "+    bank.append(z2.detach())"],
    ),
    "a memory and a baseline": (
        """import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
enc = nn.Linear(3, 4)
opt = torch.optim.Adam(enc.parameters(), lr=0.1)
memory = torch.zeros(2, 4)
baseline = torch.tensor(0.0)
for x in torch.randn(3, 5, 3):
    z = enc(x)
    attended = torch.softmax(z @ memory.T, -1) @ memory
    reward = (z + attended).mean()
    loss = (reward - baseline).pow(2)
    opt.zero_grad()
    loss.backward()
    opt.step()
    baseline = 0.9 * baseline + 0.1 * reward
    memory = torch.cat([memory, z])[-2:]
""",
        "loss.backward()",
        [
            "-    baseline = 0.9 * baseline + 0.1 * reward",
            "+    baseline = 0.9 * baseline + 0.1 * reward.detach()",
            "+    memory = memory.detach()",
        ],
    ),
    "the last output": (
        """import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    def forward(self, x, prev):
        return self.f(torch.cat([x, prev], 1))
net = Net(); opt = torch.optim.SGD(net.parameters(), 0.1)
prev = torch.zeros(3, 2)
for i, x in enumerate(torch.randn(4, 3, 2)):
    out = net(x, prev)
    smooth = (out - prev).pow(2).mean()
    loss = out.pow(2).mean() + 0.1 * smooth
    opt.zero_grad()
    loss.backward()
    opt.step()
    prev = out
""",
        "loss.backward()",
        ["+    prev = prev.detach()"],
    ),
}

CELLS = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList(nn.LSTMCell(a, b) for a, b in ((3, 4), (4, 4)))
        self.head = nn.Linear(4, 1)
    def start(self, n):
        return [(torch.zeros(n, 4), torch.zeros(n, 4)) for _ in self.cells]
    def forward(self, x, states):
        fresh = []
        for cell, state in zip(self.cells, states):
            x, c = cell(x, state)
            fresh.append((x, c))
        return self.head(x), fresh
torch.manual_seed(0)
net = Net()
opt = torch.optim.Adam(net.parameters())
"""
RIGHT |= {
    "a list of pairs that starts anew": (
        CELLS
        + """for x in torch.randn(3, 2, 3):
    states = net.start(2)
    y, states = net(x, states)
    opt.zero_grad()
    y.pow(2).mean().backward()
    opt.step()
""",
        "backward()",
    ),
}
WRONG |= {
    "a start that is learned": (
        """import torch
from torch import nn
torch.manual_seed(0)
first, cell = nn.Parameter(torch.randn(1, 1, 4)), nn.GRU(3, 4)
opt = torch.optim.Adam([first, *cell.parameters()])
hidden = first.expand(1, 2, 4).contiguous()
for x in torch.randn(3, 5, 2, 3):
    y, hidden = cell(x, hidden)
    opt.zero_grad()
    y.pow(2).mean().backward()
    opt.step()
""",
        "backward()",
        ["+    hidden = hidden.detach()"],
    ),
    "a list of pairs": (
        CELLS
        + """states = net.start(2)
for x in torch.randn(3, 2, 3):
    y, states = net(x, states)
    opt.zero_grad()
    y.pow(2).mean().backward()
    opt.step()
""",
        "backward()",
        ["+    states = [tuple(part.detach() for part in parts) for parts in states]"],
    ),
    "a list of tensors": (
        """import torch
from torch import nn
torch.manual_seed(0)
low, high = nn.GRUCell(3, 4), nn.GRUCell(4, 4)
opt = torch.optim.Adam([*low.parameters(), *high.parameters()])
def advance(x, hidden):
    one = low(x, hidden[0])
    two = high(one, hidden[1])
    return two.pow(2).mean(), [one, two]
hidden = [torch.zeros(2, 4), torch.zeros(2, 4)]
for x in torch.randn(3, 2, 3):
    loss, hidden = advance(x, hidden)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "loss.backward()",
        ["+    hidden = [part.detach() for part in hidden]"],
    ),
    "a step of the program's own": (
        """import torch
from torch import nn
class Run:
    def __init__(self):
        self.rnn, self.out = nn.LSTM(3, 4), nn.Linear(4, 1)
        self.opt = torch.optim.SGD([*self.rnn.parameters(), *self.out.parameters()], 0.1)
    def step(self, x, state):
        h, state = self.rnn(x, state)
        loss = self.out(h).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item(), state
    def epoch(self):
        state, seen = None, []
        for x in torch.randn(3, 5, 2, 3):
            loss, state = self.step(x, state)
            seen.append(loss)
        return sum(seen)
Run().epoch()
""",
        "loss.backward()",
        ["+            state = tuple(part.detach() for part in state)"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "detach_carried_state", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "detach_carried_state", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "detach_carried_state", after, still) == after
