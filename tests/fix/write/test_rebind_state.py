"""What a module keeps from call to call is bound anew, so that an earlier graph keeps what it saved."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "bound anew": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.register_buffer('mean', torch.zeros(dim))
        self.count = 0
    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0).detach()
        return self.fc(x) * self.mean
""",
        None,
    ),
    "a counter": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.register_buffer('mean', torch.zeros(dim))
        self.count = 0
    def forward(self, x):
        self.count += 1
        return self.fc(x)
""",
        None,
    ),
    "a reset": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.register_buffer('mean', torch.zeros(dim))
        self.count = 0
    def reset(self):
        self.mean.zero_()
""",
        None,
    ),
    "a local tensor": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.register_buffer('mean', torch.zeros(dim))
        self.count = 0
    def forward(self, x):
        y = self.fc(x)
        y.mul_(2)
        return y
""",
        None,
    ),
    "a dictionary": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.register_buffer('mean', torch.zeros(dim))
        self.count = 0
    def forward(self, x):
        self.log = {}
        self.log['x'] = x
        return x
""",
        None,
    ),
}
WRONG = {
    "a moving average": (
        """\"\"\"A normaliser's moving average is written in place, and two views of a batch run before backward.\"\"\"

import torch
from torch import nn


class MovingCentre(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = nn.Linear(dim, dim)
        self.register_buffer("centre", torch.zeros(dim))

    def forward(self, x):
        with torch.no_grad():
            self.centre.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return self.scale(x) * self.centre


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 4), MovingCentre(4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
first, second = torch.randn(8, 6), torch.randn(8, 6)
loss = nn.functional.mse_loss(model(first), model(second))
loss.backward()
optimizer.step()
""",
        "loss.backward()",
        [
            "-            self.centre.mul_(0.9).add_(x.mean(0), alpha=0.1)",
            "+            self.centre = self.centre.mul(0.9).add(x.mean(0), alpha=0.1)",
        ],
    ),
    "a scale behind autograd's back": (
        """import torch
from torch import nn
class Scale(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("rms", torch.ones(dim))
    def forward(self, x):
        self.rms.data.mul_(0.9).add_(x.square().mean(0), alpha=0.1)
        return x / self.rms
loss = Scale(4)(torch.randn(3, 4, requires_grad=True)).sum()
loss.backward()
""",
        "loss.backward()",
        [
            "-        self.rms.data.mul_(0.9).add_(x.square().mean(0), alpha=0.1)",
            "+        self.rms = self.rms.mul(0.9).add(x.square().mean(0), alpha=0.1).detach()",
        ],
    ),
    "a part of a table": (
        """\"\"\"A rotary table kept in a buffer is rewritten for each batch, and two batches run before backward.\"\"\"

import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim, length=32):
        super().__init__()
        self.dim, self.project = dim, nn.Linear(dim, dim)
        self.register_buffer("cos", torch.ones(length, dim))

    def forward(self, x, base):
        rate = base ** (-torch.arange(self.dim) / self.dim)
        self.cos[: x.shape[1]] = torch.cos(torch.arange(x.shape[1])[:, None] * rate)
        return self.project(x) * self.cos[: x.shape[1]]


torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)
model = Rotary(8)
short, long = torch.randn(2, 6, 8), torch.randn(2, 12, 8)
loss = model(short, base=1e4).pow(2).mean() + model(long, base=1e6).pow(2).mean()
loss.backward()
""",
        "loss.backward()",
        ["+        self.cos = self.cos.clone()"],
    ),
    "an augmented assignment": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.register_buffer('mean', torch.zeros(dim))
        self.count = 0
    def forward(self, x):
        with torch.no_grad():
            self.mean += 0.1 * (x.mean(0) - self.mean)
        return self.fc(x) * self.mean
""",
        None,
        [
            "-            self.mean += 0.1 * (x.mean(0) - self.mean)",
            "+            self.mean = self.mean + (0.1 * (x.mean(0) - self.mean))",
        ],
    ),
    "a state copied back": (
        """\"\"\"A stateful layer copies its last state into the tensor that this forward started from.\"\"\"

import torch
from torch import nn


class StatefulLSTM(nn.Module):
    def __init__(self, dim, hidden, batch):
        super().__init__()
        self.lstm, self.head = nn.LSTM(dim, hidden), nn.Linear(hidden, 1)
        self.hidden, self.cell = torch.zeros(1, batch, hidden), torch.zeros(1, batch, hidden)

    def forward(self, x):
        out, (hidden, cell) = self.lstm(x, (self.hidden, self.cell))
        self.hidden.copy_(hidden.detach())
        self.cell.copy_(cell.detach())
        return self.head(out)


torch.manual_seed(0)
model = StatefulLSTM(3, 8, batch=4)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(2):
    loss = model(torch.randn(5, 4, 3)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        "loss.backward()",
        [
            "-        self.hidden.copy_(hidden.detach())",
            "-        self.cell.copy_(cell.detach())",
            "+        self.hidden = hidden.detach()",
            "+        self.cell = cell.detach()",
        ],
    ),
    "a queue with two writes": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.register_buffer('mean', torch.zeros(dim))
        self.count = 0
        self.register_buffer('queue', torch.zeros(8, dim))
    def forward(self, x):
        scores = self.fc(x) @ self.queue.T
        self.queue[:4] = x.detach()
        self.queue[4:] = x.detach()
        return scores
""",
        None,
        ["+        self.queue = self.queue.clone()"],
    ),
    "a quotient that is copied in past autograd": (
        """import torch
from torch import nn
class Table(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer('table', torch.zeros(dim))
        self.register_buffer('sums', torch.zeros(dim))
    def forward(self, x):
        y = x @ self.table
        self.table.data.copy_(self.sums / x.sum())
        return y
""",
        None,
        [
            "-        self.table.data.copy_(self.sums / x.sum())",
            "+        self.table = (self.sums / x.sum()).detach()",
        ],
    ),
    "lerp in a method of its own": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.register_buffer('mean', torch.zeros(dim))
        self.count = 0
    @torch.no_grad()
    def update(self, x):
        self.mean.lerp_(x.mean(0), 0.1)
    def forward(self, x):
        self.update(x)
        return self.fc(x) * self.mean
""",
        None,
        ["-        self.mean.lerp_(x.mean(0), 0.1)", "+        self.mean = self.mean.lerp(x.mean(0), 0.1)"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "rebind_state", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "rebind_state", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "rebind_state", after, still) == after
