"""`autograd.grad` before the loss's own backward keeps the graph, and makes a penalty differentiable."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "a penalty that is differentiable": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
x.requires_grad_()
out = net(x)
(g,) = torch.autograd.grad(out.sum(), x, create_graph=True)
loss = out.mean() + g.norm()
loss.backward()
""",
        "loss.backward",
    ),
    "a gradient of another graph": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
y = x.clone().requires_grad_()
(g,) = torch.autograd.grad(y.pow(2).sum(), y)
loss = net(x).sum()
loss.backward()
""",
        "loss.backward",
    ),
    "after the backward": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
loss.backward()
(g,) = torch.autograd.grad(net(x).sum(), list(net.parameters()))
""",
        "loss.backward",
    ),
    "an optimizer whose own backward differentiates": (
        """import torch
from torch import nn
class Surgery:
    def __init__(self, parameters):
        self.parameters = list(parameters)
    def flat(self, loss):
        return torch.cat([one.reshape(-1) for one in torch.autograd.grad(loss, self.parameters)])
    def backward(self, losses):
        rows = [self.flat(loss) for loss in losses]
        for one in self.parameters:
            one.grad = torch.zeros_like(one) + sum(row.sum() for row in rows)
net = nn.Linear(3, 2)
surgery = Surgery(net.parameters())
out = net(torch.randn(4, 3))
losses = [out[:, 0].mean(), out[:, 1].mean()]
surgery.backward(losses)
""",
        "torch.autograd.grad",
    ),
}

WRONG = {
    "a penalty": (
        """import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(critic.parameters())
inputs = torch.rand(8, 3, requires_grad=True)
scores = critic(inputs)
(slope,) = torch.autograd.grad(scores.sum(), inputs)
penalty = (slope.norm(dim=1) - 1).pow(2).mean()
optimizer.zero_grad()
(scores.mean() + 10 * penalty).backward()
optimizer.step()
""",
        ".backward()",
        [
            "-(slope,) = torch.autograd.grad(scores.sum(), inputs)",
            "+(slope,) = torch.autograd.grad(scores.sum(), inputs, create_graph=True)",
        ],
    ),
    "gradients that are measured": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
grads = torch.autograd.grad(loss, list(net.parameters()))
print(grads[0].norm())
loss.backward()
""",
        "loss.backward",
        [
            "-grads = torch.autograd.grad(loss, list(net.parameters()))",
            "+grads = torch.autograd.grad(loss, list(net.parameters()), retain_graph=True)",
        ],
    ),
    "a second derivative in helpers": (
        """import torch
from torch import nn
net = nn.Linear(1, 1)
def grad(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y))[0]
def residual(x):
    u = net(x).tanh()
    slope = grad(u, x)
    return grad(slope, x) + u
x = torch.rand(4, 1, requires_grad=True)
loss = residual(x).pow(2).mean()
loss.backward()
""",
        "return torch.autograd.grad",
        [
            "-    return torch.autograd.grad(y, x, torch.ones_like(y))[0]",
            "+    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]",
        ],
    ),
    "a penalty in a helper": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
def penalty(critic, x):
    x = x.clone().requires_grad_()
    score = critic(x).sum()
    (g,) = torch.autograd.grad(score, x)
    return (g.norm(dim=1) - 1).pow(2).mean()
critic = nn.Linear(3, 1)
x = torch.randn(4, 3)
loss = critic(x).mean() + 10 * penalty(critic, x)
loss.backward()
""",
        "loss.backward",
        ["-    (g,) = torch.autograd.grad(score, x)", "+    (g,) = torch.autograd.grad(score, x, create_graph=True)"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "keep_graph_of_gradient", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "keep_graph_of_gradient", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "keep_graph_of_gradient", after, still) == after
