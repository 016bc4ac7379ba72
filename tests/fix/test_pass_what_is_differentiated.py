"""The network runs on the tensor whose gradient is asked for."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
net = nn.Linear(4, 3)
x, y = torch.randn(2, 4), torch.tensor([0, 1])
"""
RIGHT = {
    "the same object": (
        HEAD
        + """x = x.requires_grad_(True)
out = net(x).sum()
(g,) = torch.autograd.grad(out, x)
""",
        "autograd.grad",
    ),
    "the pieces, joined": (
        HEAD
        + """p = torch.rand(5, 4, requires_grad=True)
a, b = p[:, :2], p[:, 2:]
u = net(torch.cat([a, b], dim=1))
(g,) = torch.autograd.grad(u.sum(), a)
""",
        "autograd.grad",
    ),
    "pieces that leave a gap": (
        HEAD
        + """p = torch.rand(5, 4, requires_grad=True)
a, b = p[:, :1], p[:, 2:]
u = net(p)
(g,) = torch.autograd.grad(u.sum(), a)
""",
        "autograd.grad",
    ),
    "a gradient by a parameter": (
        HEAD
        + """out = net(x).sum()
(g,) = torch.autograd.grad(out, net.weight)
""",
        "autograd.grad",
    ),
}
WRONG = {
    "two columns": (
        HEAD
        + """p = torch.rand(5, 4, requires_grad=True)
a, b = p[:, 0:2], p[:, 2:4]
u = net(p)
(g,) = torch.autograd.grad(u.sum(), b)
""",
        "autograd.grad",
        ["u = net(torch.cat([a, b], dim=1))"],
    ),
    "a scaled input": (
        HEAD
        + """p = torch.rand(5, 4, requires_grad=True)
scaled = p / 2
u = net(p)
(g,) = torch.autograd.grad(u.sum(), scaled)
""",
        "autograd.grad",
        ["u = net(scaled)"],
    ),
    "a clone": (
        HEAD
        + """p = torch.rand(5, 4)
q = p.clone().requires_grad_(True)
loss = F.cross_entropy(net(p), torch.zeros(5).long())
(g,) = torch.autograd.grad(loss, q)
""",
        "autograd.grad",
        ["loss = F.cross_entropy(net(q), torch.zeros(5).long())"],
    ),
    "adapted parameters": (
        HEAD
        + """from torch.func import functional_call
weights = dict(net.named_parameters())
for _ in range(2):
    loss = net(x).sum()
    grads = torch.autograd.grad(loss, tuple(weights.values()), create_graph=True)
    weights = {n: w - 0.1 * g for (n, w), g in zip(weights.items(), grads)}
""",
        "autograd.grad",
        ["loss = functional_call(net, weights, (x,)).sum()"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Forwards on the tensor itself, and pieces that do not cover it, are left alone."""
    assert rewritten(tmp_path, "pass_what_is_differentiated", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The forward reads the tensor; a second time nothing is left to do."""
    after = rewritten(tmp_path, "pass_what_is_differentiated", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "pass_what_is_differentiated", after, again) == after
