"""A gradient gets the form of what it belongs to, and never another value."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "one loss and a row of gradients": (
        "import torch\ntorch.autograd.backward(loss, grad_tensors=weights)\n",
        "torch.autograd.backward",
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a shape of torch.Size([]).",
    ),
    "in its form": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
p.grad = piece.view_as(p)
""",
        "p.grad",
        "attempting to assign a gradient of size '[12]' to a tensor of size '[3, 4]'. Please ensure that the gradient and the tensor are the same size",
    ),
    "a gradient that may be transposed": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
p.grad = piece
""",
        "p.grad",
        "attempting to assign a gradient of size '[4, 3]' to a tensor of size '[3, 4]'. Please ensure that the gradient and the tensor are the same size",
    ),
    "a gradient for a vector": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
y = net(x)
g = torch.ones(1)
y.backward(g)
""",
        "y.backward",
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([1]) and output[0] has a shape of torch.Size([4]).",
    ),
    "no gradient": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
loss.backward()
""",
        "loss.backward",
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([1]) and output[0] has a shape of torch.Size([]).",
    ),
    "a gradient without a dimension": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
loss.backward(g.squeeze())
""",
        "loss.backward",
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([1]) and output[0] has a shape of torch.Size([]).",
    ),
}
OF_EACH = (
    "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a shape of torch.Size([])."
)
OF_ONE = "Mismatch in shape: grad_output[0] has a shape of torch.Size([1]) and output[0] has a shape of torch.Size([])."
WRONG = {
    "weights of several losses": (
        "import torch\nlosses = [f(x) for x in batch]\ntorch.autograd.backward(losses, grad_tensors=weights)\n",
        "torch.autograd.backward",
        OF_EACH,
        [
            "-torch.autograd.backward(losses, grad_tensors=weights)",
            "+torch.autograd.backward(losses, grad_tensors=list(weights))",
        ],
    ),
    "weights by position": (
        "import torch\ntorch.autograd.grad([a, b, c], p, w.softmax(0))\n",
        "torch.autograd.grad",
        OF_EACH,
        ["-torch.autograd.grad([a, b, c], p, w.softmax(0))", "+torch.autograd.grad([a, b, c], p, list(w.softmax(0)))"],
    ),
    "a one and its opposite": (
        "import torch\none = torch.FloatTensor([1])\nmone = one * -1\nreal.backward(mone)\nfake.backward(one)\n",
        "real.backward",
        OF_ONE,
        ["-one = torch.FloatTensor([1])", "+one = torch.tensor(1.0)"],
    ),
    "a flat piece": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
p.grad = piece
""",
        "p.grad",
        "attempting to assign a gradient of size '[12]' to a tensor of size '[3, 4]'. Please ensure that the gradient and the tensor are the same size",
        ["-p.grad = piece", "+p.grad = piece.view_as(p)"],
    ),
    "a piece that is computed": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
p.grad = flat[0:4] / n
""",
        "p.grad",
        "attempting to assign a gradient of size '[12]' to a tensor of size '[3, 4]'. Please ensure that the gradient and the tensor are the same size",
        ["-p.grad = flat[0:4] / n", "+p.grad = (flat[0:4] / n).view_as(p)"],
    ),
    "a one for a scalar": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
one = torch.ones(1)
loss = net(x).sum()
loss.backward(one)
""",
        "loss.backward",
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([1]) and output[0] has a shape of torch.Size([]).",
        ["-loss.backward(one)", "+loss.backward()"],
    ),
    "a one in the call": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
loss.backward(torch.FloatTensor([1.0]))
""",
        "loss.backward",
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([1]) and output[0] has a shape of torch.Size([]).",
        ["-loss.backward(torch.FloatTensor([1.0]))", "+loss.backward()"],
    ),
    "a minus one": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
mone = torch.tensor([-1.0])
loss = net(x).sum()
loss.backward(mone)
""",
        "loss.backward",
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([1]) and output[0] has a shape of torch.Size([]).",
        ["-loss.backward(mone)", "+loss.backward(mone.squeeze())"],
    ),
    "a minus one that is computed": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
mone = torch.ones(1) * -1
loss = net(x).sum()
loss.backward(mone)
""",
        "loss.backward",
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([1]) and output[0] has a shape of torch.Size([]).",
        ["-loss.backward(mone)", "+loss.backward(mone.squeeze())"],
    ),
}


@pytest.mark.parametrize(("source", "at", "message"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, message: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "give_gradient_form", source, at, message=message) == source


@pytest.mark.parametrize(("source", "at", "message", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(
    source: str, at: str | None, message: str, changes: list[str], tmp_path: pathlib.Path
) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "give_gradient_form", source, at, message=message)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "give_gradient_form", after, still, message=message) == after
