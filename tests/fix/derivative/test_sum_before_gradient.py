"""The gradient of many values in respect of the inputs is that of their sum; in respect of weights nothing is decided."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

TOP = "import torch\nfrom torch import autograd\n"
WRONG = {
    "forces": (
        "def forces(net, pos):\n    pos = pos.detach().requires_grad_(True)\n    energy = net(pos)\n    slope, = torch.autograd.grad(energy, pos, create_graph=True)\n    return -slope\n",
        ["-    slope, = torch.autograd.grad(energy, pos, create_graph=True)", "+    slope, = torch.autograd.grad(energy.sum(), pos, create_graph=True)"],
    ),
    "a penalty": (
        "def penalty(critic, x):\n    x.requires_grad_(True)\n    return autograd.grad(critic(x), [x], create_graph=True)[0].norm()\n",
        ["-    return autograd.grad(critic(x), [x], create_graph=True)[0].norm()", "+    return autograd.grad(critic(x).sum(), [x], create_graph=True)[0].norm()"],
    ),
    "keywords and a sum of terms": (
        "def score(net, x):\n    x = torch.tensor(x, requires_grad=True)\n    return torch.autograd.grad(outputs=net(x) - x, inputs=x)[0]\n",
        ["-    return torch.autograd.grad(outputs=net(x) - x, inputs=x)[0]", "+    return torch.autograd.grad(outputs=(net(x) - x).sum(), inputs=x)[0]"],
    ),
    "inputs that a caller hands to a helper": (
        "def slope(u, x):\n    return torch.autograd.grad(u, x, create_graph=True)[0]\n\ndef residual(net, xt):\n    xt = xt.clone().requires_grad_(True)\n    return slope(net(xt), xt)\n",
        ["-    return torch.autograd.grad(u, x, create_graph=True)[0]", "+    return torch.autograd.grad(u.sum(), x, create_graph=True)[0]"],
    ),
    "what a network was run on, before it has its flag": (
        "def penalty(critic, real, fake):\n    mixed = 0.5 * real + 0.5 * fake\n    out = critic(mixed)\n    return autograd.grad(out, mixed, create_graph=True)[0].norm()\n",
        ["-    return autograd.grad(out, mixed, create_graph=True)[0].norm()", "+    return autograd.grad(out.sum(), mixed, create_graph=True)[0].norm()"],
    ),
    "a flag of its own": (
        "def score(net, x):\n    x.requires_grad = True\n    out = net(x)\n    return torch.autograd.grad(out, x)[0]\n",
        ["-    return torch.autograd.grad(out, x)[0]", "+    return torch.autograd.grad(out.sum(), x)[0]"],
    ),
}  # fmt: skip
RIGHT = {
    "weighted": "def f(net, x):\n    x.requires_grad_(True)\n    y = net(x)\n    return torch.autograd.grad(y, x, grad_outputs=torch.ones_like(y))[0]\n",
    "weighted by place": "def f(net, x, w):\n    x.requires_grad_(True)\n    return torch.autograd.grad(net(x), x, w)[0]\n",
    "reduced": "def f(net, x):\n    x.requires_grad_(True)\n    return torch.autograd.grad(net(x).sum(), x)[0]\n",
    "of parameters": "def f(net, x):\n    loss = net(x)\n    return torch.autograd.grad(loss, list(net.parameters()))[0]\n",
    "of what one of the callers trains": "def slope(u, x):\n    return torch.autograd.grad(u, x)[0]\n\ndef f(net, x):\n    x = x.clone().requires_grad_(True)\n    return slope(net(x), x), slope(net(x), net.weight)\n",
    "of weights that a network is run with": "def f(net, x, weights):\n    out = functional_call(net, weights, x)\n    return torch.autograd.grad(out, weights)[0]\n",
    "of weights by name": "def f(net, x, weights):\n    return torch.autograd.grad(net(x), weights)[0]\n",
}


@pytest.mark.parametrize(("body", "changes"), WRONG.values(), ids=WRONG)
def test_the_sum_is_differentiated(body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """A second time nothing is left to do."""
    after = rewritten(tmp_path, "sum_before_gradient", TOP + body, "grad(")
    assert diff_lines(TOP + body, after) == changes
    assert rewritten(tmp_path, "sum_before_gradient", after, "grad(") == after


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(body: str, tmp_path: pathlib.Path) -> None:
    """What has its weights, one value already, or asks for the gradient of weights."""
    assert rewritten(tmp_path, "sum_before_gradient", TOP + body, "grad(") == TOP + body
