"""A loss with one value a sample becomes one number where it is made."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "reduced already": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).mean()
opt.zero_grad()
loss.backward()
opt.step()
""",
        "loss.backward",
    ),
    "reduced by sum": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = F.mse_loss(net(x), x[:, :2], reduction='none').sum()
opt.zero_grad()
loss.backward()
opt.step()
""",
        "loss.backward",
    ),
    "reduced at the call": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = F.mse_loss(net(x), x[:, :2], reduction='none')
loss.mean().backward()
""",
        ".backward",
    ),
    "another line raised": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x)
print(loss)
loss.backward()
""",
        "print",
    ),
}
WRONG = {
    "a criterion that does not reduce": (
        """import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss(reduction="none")
inputs, labels = torch.rand(8, 4), torch.randint(3, (8,))
loss = criterion(model(inputs), labels)
optimizer.zero_grad()
loss.backward()
optimizer.step()
""",
        "loss.backward()",
        ["-loss = criterion(model(inputs), labels)", "+loss = criterion(model(inputs), labels).mean()"],
    ),
    "an expression": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = (net(x) - 1) ** 2
opt.zero_grad()
loss.backward()
opt.step()
""",
        "loss.backward",
        ["-loss = (net(x) - 1) ** 2", "+loss = ((net(x) - 1) ** 2).mean()"],
    ),
    "backward on the call itself": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
F.cross_entropy(net(x), y, reduction='none').backward()
""",
        ".backward",
        [
            "-F.cross_entropy(net(x), y, reduction='none').backward()",
            "+F.cross_entropy(net(x), y, reduction='none').mean().backward()",
        ],
    ),
    "values that others read": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = F.cross_entropy(net(x), y, reduction='none')
hardest = loss.max()
loss.backward()
""",
        "loss.backward",
        ["-loss.backward()", "+loss.mean().backward()"],
    ),
    "an accelerator": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = criterion(net(x))
accelerator.backward(loss)
""",
        "accelerator.backward",
        ["-loss = criterion(net(x))", "+loss = criterion(net(x)).mean()"],
    ),
    "torch.func.grad": (
        """import torch
from torch import nn
from torch.func import functional_call, grad

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, target = torch.rand(8, 4), torch.rand(8, 1)


def loss(parameters):
    return (functional_call(model, parameters, (inputs,)) - target).pow(2)


gradients = grad(loss)(dict(model.named_parameters()))
for name, parameter in model.named_parameters():
    parameter.grad = gradients[name]
optimizer.step()
""",
        "gradients = grad",
        [
            "-    return (functional_call(model, parameters, (inputs,)) - target).pow(2)",
            "+    return (functional_call(model, parameters, (inputs,)) - target).pow(2).mean()",
        ],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "reduce_loss", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "reduce_loss", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "reduce_loss", after, still) == after
