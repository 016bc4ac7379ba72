"""A parameter is updated or initialised under `no_grad`."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, diff_lines, failed, line_of, rewritten, write

RIGHT = {
    "under no_grad": (
        """\"\"\"A hand-written gradient step changes the weights in place with grad mode on.\"\"\"

import torch

torch.manual_seed(0)
x, y = torch.randn(16, 3), torch.randn(16, 1)
w = torch.randn(3, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
for _ in range(3):
    loss = (x @ w + b - y).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
    w.grad, b.grad = None, None
loss = (x @ w + b - y).pow(2).mean()
loss.backward()
""",
        "w -= 0.1",
    ),
    "an activation of a forward": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class N(nn.Module):
    def forward(self, x):
        h = self.fc(x)
        h += 1
        return h
""",
        "h += 1",
    ),
    "a leaf that is part of a forward": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class N(nn.Module):
    def forward(self, x):
        h = self.weight
        h += 1
        return h
""",
        "h += 1",
    ),
    "a leaf that a callable hands on": (
        "import torch\nclass Scale:\n    def __call__(self, x):\n        w = self.weight\n        w += 1\n        return w * x\n",
        "w += 1",
    ),
    "a value that a helper of the forward returns": (
        "import torch\nclass N(torch.nn.Module):\n    def shifted(self, x):\n        w = self.fc.weight.view(-1)\n        w += x\n        return w\n",
        "w += x",
    ),
    "a tensor that a function was given": (
        "import torch\ndef squash(x):\n    x.mul_(2)\n    return x.sum()\n",
        "x.mul_",
    ),
    "a tensor of data": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
x = torch.randn(3)
x += 1
""",
        "x += 1",
    ),
}
LION = """import torch
from torch.optim import Optimizer
class Lion(Optimizer):
    def __init__(self, params, lr=1e-4):
        super().__init__(params, dict(lr=lr))
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.mul_(1 - group["lr"])
                update = p.grad.sign()
                p.add_(update, alpha=-group["lr"])
        return loss
"""
WRONG = {
    "an attack whose leaf has its flag set later": (
        """import torch
net = torch.nn.Linear(3, 1)
x = torch.randn(2, 3)
delta = torch.zeros_like(x)
delta.requires_grad_(True)
for _ in range(3):
    net(x + delta).sum().backward()
    delta += 0.1 * delta.grad.sign()
    delta.clamp_(-0.2, 0.2)
    print(x)
    delta.grad.zero_()
""",
        "delta += 0.1",
        [
            "-    delta += 0.1 * delta.grad.sign()",
            "-    delta.clamp_(-0.2, 0.2)",
            "+    with torch.no_grad():",
            "+        delta += 0.1 * delta.grad.sign()",
            "+        delta.clamp_(-0.2, 0.2)",
        ],
    ),
    "rows of a parameter that is got by its name": (
        """import torch
net = torch.nn.Linear(3, 4)
def grow(model, saved):
    for name, old in saved.items():
        model.get_parameter(name)[:len(old)] = old
    return len(saved)
grow(net, {"weight": torch.zeros(2, 3)})
""",
        "model.get_parameter",
        [
            "-        model.get_parameter(name)[:len(old)] = old",
            "+        with torch.no_grad():",
            "+            model.get_parameter(name)[:len(old)] = old",
        ],
    ),
    "the step of an optimizer": (LION, "p.mul_", ["+    @torch.no_grad()"]),
    "a step whose closure needs grad mode": (
        LION.replace("            with torch.enable_grad():\n                loss", "            loss"),
        "p.mul_",
        [
            *("-" + line for line in LION.splitlines()[11:17]),
            "+            with torch.no_grad():",
            *("+    " + line for line in LION.splitlines()[11:17]),
        ],
    ),
    "an update of several lines": (
        """import torch
def sgd(params, lr, decay):
    for p in params:
        p.mul_(1 - lr * decay)
        change = lr * p.grad
        p.sub_(change)
""",
        "p.mul_",
        [
            "-    for p in params:",
            "-        p.mul_(1 - lr * decay)",
            "-        change = lr * p.grad",
            "-        p.sub_(change)",
            "+    with torch.no_grad():",
            "+        for p in params:",
            "+            p.mul_(1 - lr * decay)",
            "+            change = lr * p.grad",
            "+            p.sub_(change)",
        ],
    ),
    "two updates": (
        """\"\"\"A hand-written gradient step changes the weights in place with grad mode on.\"\"\"

import torch

torch.manual_seed(0)
x, y = torch.randn(16, 3), torch.randn(16, 1)
w = torch.randn(3, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
for _ in range(3):
    loss = (x @ w + b - y).pow(2).mean()
    loss.backward()
    w -= 0.1 * w.grad
    b -= 0.1 * b.grad
    w.grad, b.grad = None, None
loss = (x @ w + b - y).pow(2).mean()
loss.backward()
""",
        "w -= 0.1",
        [
            "-    w -= 0.1 * w.grad",
            "-    b -= 0.1 * b.grad",
            "+    with torch.no_grad():",
            "+        w -= 0.1 * w.grad",
            "+        b -= 0.1 * b.grad",
        ],
    ),
    "a method that initialises": (
        """\"\"\"A detection head sets part of its convolution's bias through a view, with grad mode on.\"\"\"

import math

import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, anchors=3, classes=4):
        super().__init__()
        self.anchors = anchors
        self.conv = nn.Conv2d(8, anchors * (classes + 5), 1)
        self.init_bias()

    def init_bias(self):
        bias = self.conv.bias.view(self.anchors, -1)
        bias[:, 4] += math.log(8 / (640 / 32) ** 2)

    def forward(self, x):
        return self.conv(x)


torch.manual_seed(0)
head = Head()
loss = head(torch.randn(2, 8, 4, 4)).pow(2).mean()
loss.backward()
""",
        "bias[:, 4]",
        ["+    @torch.no_grad()"],
    ),
    "a row of a table": (
        """\"\"\"A new row of an embedding table is filled by assignment, with grad mode on.\"\"\"

import torch
from torch import nn

torch.manual_seed(0)
embed, head = nn.Embedding(11, 8), nn.Linear(8, 11)
embed.weight[10] = embed.weight[:10].mean(0)
tokens = torch.randint(11, (4, 6))
loss = nn.functional.cross_entropy(head(embed(tokens)).flatten(0, 1), tokens.flatten())
loss.backward()
""",
        "embed.weight[10]",
        [
            "-embed.weight[10] = embed.weight[:10].mean(0)",
            "+with torch.no_grad():",
            "+    embed.weight[10] = embed.weight[:10].mean(0)",
        ],
    ),
    "a table that a method hands out": (
        """import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(6, 4)
    def get_input_embeddings(self):
        return self.table
def fill(model):
    table = model.get_input_embeddings().weight
    for row in (4, 5):
        table[row] = table[:4].mean(dim=0)
    return model
model = fill(Model())
""",
        "table[row]",
        [
            "-        table[row] = table[:4].mean(dim=0)",
            "+        with torch.no_grad():",
            "+            table[row] = table[:4].mean(dim=0)",
        ],
    ),
    "a view that a function makes": (
        """import torch
from torch import nn
def gate(bias, at):
    return bias.view(4, -1)[at]
lstm = nn.LSTM(2, 3)
for name, p in lstm.named_parameters():
    if name.startswith("bias"):
        gate(p, 1).fill_(1.0)
""",
        "gate(p, 1).fill_",
        [
            "-        gate(p, 1).fill_(1.0)",
            "+        with torch.no_grad():",
            "+            gate(p, 1).fill_(1.0)",
        ],
    ),
    "some weights in a loop": (
        """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.out = nn.Embedding(4, 3), nn.Linear(3, 2)
    def project(self):
        for table in (self.mix.weight, self.out.weight):
            table.clamp_(min=0)
Net().project()
""",
        "table.clamp_",
        ["+    @torch.no_grad()"],
    ),
    "parameters in a loop": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
for p in net.parameters():
    p -= 0.1 * p.grad
""",
        "p -= 0.1",
        ["-    p -= 0.1 * p.grad", "+    with torch.no_grad():", "+        p -= 0.1 * p.grad"],
    ),
    "weights that a callable clips": (
        """import torch
class Box:
    def __init__(self, module):
        self.module = module
    def __call__(self):
        for weight in self.module.parameters():
            print(weight.abs().max())
            weight.clamp_(-0.1, 0.1)
        self.calls = 1
""",
        "clamp_",
        [
            "-            weight.clamp_(-0.1, 0.1)",
            "+            with torch.no_grad():",
            "+                weight.clamp_(-0.1, 0.1)",
        ],
    ),
    "an initialisation in a constructor": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.fc.weight.fill_(0.5)
""",
        "self.fc.weight.fill_",
        [
            "-        self.fc.weight.fill_(0.5)",
            "+        with torch.no_grad():",
            "+            self.fc.weight.fill_(0.5)",
        ],
    ),
    "a parameter of another object": (
        """import torch
class Clip:
    def __init__(self, largest):
        self.largest = largest
        self.seen = 0
    def after_step(self, engine):
        self.seen += 1
        print(self.seen)
        engine.model.scale.clamp_(0.0, self.largest)
        return engine.step(self)
""",
        "clamp_",
        [
            "-        engine.model.scale.clamp_(0.0, self.largest)",
            "+        with torch.no_grad():",
            "+            engine.model.scale.clamp_(0.0, self.largest)",
        ],
    ),
    "a chain over the weights of two lists": (
        """import torch
def follow(slow, fast):
    for p, q in zip(slow, fast):
        p.mul_(0.9).add_(q, alpha=0.1)
net, old = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
follow(list(old.parameters()), list(net.parameters()))
""",
        "p.mul_",
        [
            "-        p.mul_(0.9).add_(q, alpha=0.1)",
            "+        with torch.no_grad():",
            "+            p.mul_(0.9).add_(q, alpha=0.1)",
        ],
    ),
    "a weight and what takes it over": (
        """import torch
def blend(pairs):
    for fast, slow in pairs:
        fast.mul_(0.5)
        slow.copy_(fast)
blend([(torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2)))])
""",
        "fast.mul_",
        [
            "-        fast.mul_(0.5)",
            "-        slow.copy_(fast)",
            "+        with torch.no_grad():",
            "+            fast.mul_(0.5)",
            "+            slow.copy_(fast)",
        ],
    ),
    "no_grad imported by name": (
        """from torch import no_grad, nn
net = nn.Linear(2, 2)
net.bias[0] = 1.0
""",
        "net.bias[0]",
        ["-net.bias[0] = 1.0", "+with no_grad():", "+    net.bias[0] = 1.0"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "write_under_no_grad", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "write_under_no_grad", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "write_under_no_grad", after, still) == after


INNER = """import torch
from torch import nn
import torch.nn.functional as F
def sgd(params, grads):
    for p, g in zip(params, grads):
        p.sub_(0.1 * g)
net = nn.Linear(3, 1)
outer = torch.optim.Adam(net.parameters())
x, y = torch.randn(4, 3), torch.randn(4, 1)
params = list(net.parameters())
sgd(params, torch.autograd.grad(F.mse_loss(net(x), y), params))
F.mse_loss(net(x), y).backward()
outer.step()
"""
SHARP = INNER.replace("F.mse_loss(net(x), y).backward()", "F.mse_loss(net(x), y).backward()\nparams[0].data.add_(1)")
PLAIN = INNER.replace("outer = torch.optim.Adam(net.parameters())\n", "").replace("outer.step()\n", "")


@pytest.mark.parametrize(
    ("source", "applicability"),
    [(INNER, "display"), (SHARP, None), (PLAIN, None)],
    ids=["an inner step", "weights that are put back", "no optimizer beside it"],
)
def test_whether_an_inner_step_moves_the_start_is_the_authors(
    tmp_path: pathlib.Path, source: str, applicability: str | None
) -> None:
    """Where an optimizer moves the same weights the edit is only shown: MAML copies them, Reptile does not."""
    program = write(tmp_path, {"train.py": source})
    found = best("write_under_no_grad", program, incident=failed({"train.py": line_of(source, "p.sub_")}))
    assert found is not None
    assert found.applicability == applicability


MASK = """import weakref
import torch
class Mask:
    def __init__(self, weight, off):
        self.weight, self.off = weakref.ref(weight), off
    def __call__(self, *_):
        weight = self.weight()
        weight[self.off] = 0.0
"""


def test_a_weight_that_is_held_weakly(tmp_path: pathlib.Path) -> None:
    """Another object owns it; a method that makes it is another thing."""
    after = rewritten(tmp_path, "write_under_no_grad", MASK, "weight[self.off] = 0.0")
    assert diff_lines(MASK, after)[1:] == ["+        with torch.no_grad():", "+            weight[self.off] = 0.0"]
    other = MASK.replace("weakref.ref(weight)", "make(weight)")
    assert rewritten(tmp_path, "write_under_no_grad", other, "weight[self.off] = 0.0") == other
