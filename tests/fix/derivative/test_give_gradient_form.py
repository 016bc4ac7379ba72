"""A gradient gets the form of what it belongs to, and never another value."""

from __future__ import annotations

import pathlib

import pytest

from explainer.ingest.text import read_text
from explainer.workflow import explain_incident, plan_report
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


ONES = """import torch
def slope(net, x):
    x = x.detach().requires_grad_()
    energy = net(x)
    seed = {seed}
    return {call}
"""
SHAPES = "grad_output[0] has a shape of torch.Size([{}]) and output[0] has a shape of torch.Size([{}])."
GRAD = "torch.autograd.grad(energy, x, grad_outputs={}, create_graph=True)[0]"


@pytest.mark.parametrize(
    ("seed", "call", "shapes", "changed"),
    [
        ("torch.ones(len(x))", GRAD.format("seed"), ("64", "64, 1"), GRAD.format("torch.ones_like(energy)")),
        ("torch.ones(len(x), 1)", GRAD.format("seed"), ("64, 1", "64"), GRAD.format("torch.ones_like(energy)")),
        ("None", GRAD.format("torch.ones(len(x))"), ("64", "64, 1"), GRAD.format("torch.ones_like(energy)")),
        ("torch.ones(len(x))", "energy.backward(seed)", ("64", "64, 1"), "energy.backward(torch.ones_like(energy))"),
        ("torch.ones(len(x))", GRAD.format("seed"), ("64", "64, 3"), None),
        ("torch.rand(len(x))", GRAD.format("seed"), ("64", "64, 1"), None),
    ],
)  # fmt: skip
def test_ones_take_the_shape_of_the_output(
    tmp_path: pathlib.Path, seed: str, call: str, shapes: tuple[str, str], changed: str | None
) -> None:
    """As many ones in the same order: of a matrix for a vector it is not known which outputs count."""
    source = ONES.format(seed=seed, call=call)
    after = rewritten(tmp_path, "give_gradient_form", source, "return", message=SHAPES.format(*shapes))
    assert diff_lines(source, after) == ([f"-    return {call}", f"+    return {changed}"] if changed else [])


def test_an_edit_may_take_the_last_reader_from_a_line(tmp_path: pathlib.Path, catalog) -> None:
    """`seed` is read by nobody afterwards, and stands as it did."""
    (tmp_path / "train.py").write_text(ONES.format(seed="torch.ones(len(x))", call=GRAD.format("seed")))
    log = f'Traceback (most recent call last):\n  File "train.py", line 6, in slope\nRuntimeError: Mismatch in shape: {SHAPES.format("64", "64, 1")}\n'
    (incident,) = read_text(log)
    report = plan_report(explain_incident(incident, None, catalog), catalog, str(tmp_path))
    assert any("torch.ones_like(energy)" in (one.patch or "") for one in report.findings[0].fixes)
