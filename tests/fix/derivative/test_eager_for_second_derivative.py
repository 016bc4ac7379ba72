"""What is differentiated twice runs uncompiled."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
net = nn.Linear(4, 1)
x = torch.randn(2, 4, requires_grad=True)
"""
DONATED = "This backward function was compiled with non-empty donated buffers"
PENALTY = """import torch
def penalty(critic, x):
    (g,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return g.square().sum()
"""
IN_LOOP = """def build(modules):
    for one in modules.values():
        one.compile(backend="aot_eager")
"""
RIGHT = {
    "an argument, and nothing is compiled": (PENALTY, ""),
    "a model of another kind is told its loss": (
        PENALTY
        + """def build(model):
    model.compile(optimizer="adam", loss="mse")
""",
        "",
    ),
    "a pattern is compiled": (
        PENALTY
        + """import re
NAME = re.compile("a")
""",
        "",
    ),
    "a function of the program": (
        IN_LOOP
        + """import torch
def energy(x):
    return x.square().sum()
def force(x):
    return torch.autograd.grad(energy(x), x, create_graph=True)[0]
""",
        "",
    ),
    "a module with a hook, which `forward` would pass by": (
        PENALTY
        + IN_LOOP
        + """def watch(net, seen):
    net.register_forward_hook(lambda *given: seen.append(given))
""",
        "",
    ),
    "both ways, and which it was is open": (
        PENALTY
        + IN_LOOP
        + """def fast(net):
    return torch.compile(net)
""",
        "",
    ),
    "a local function": (
        IN_LOOP
        + """import torch
def force(x, net):
    net = lambda y: y.square()
    return torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]
""",
        "",
    ),
    "no compilation": (
        HEAD
        + """(g,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
""",
        "",
    ),
    "a first derivative": (
        HEAD
        + """fast = torch.compile(net)
(g,) = torch.autograd.grad(fast(x).sum(), x)
""",
        "",
    ),
    "a compiled forward beside it": (
        HEAD
        + """fast = torch.compile(net)
score = fast(x)
(g,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
""",
        "",
    ),
}
WRONG = {
    "an argument whose module compiled itself": (
        PENALTY + IN_LOOP,
        "",
        ["(g,) = torch.autograd.grad(critic.forward(x).sum(), x, create_graph=True)"],
    ),
    "an argument that was compiled elsewhere, or not": (
        PENALTY
        + """def build(net, config):
    return torch.compile(net) if config.compile else net
""",
        "",
        ['(g,) = torch.autograd.grad(getattr(critic, "_orig_mod", critic)(x).sum(), x, create_graph=True)'],
    ),
    "an attribute, asked by keyword": (
        """import torch
class Trainer:
    def __init__(self, parts):
        self.critic = parts["critic"]
        for part in parts.values():
            part.compile()
    def penalty(self, x):
        scores = self.critic(x)
        g = torch.autograd.grad(outputs=scores.sum(), inputs=x, create_graph=True)[0]
        return g.norm(dim=1).sub(1).square().mean()
""",
        "",
        ["scores = self.critic.forward(x)"],
    ),
    "a call in the gradient": (
        HEAD
        + """fast = torch.compile(net)
(g,) = torch.autograd.grad(fast(x).sum(), x, create_graph=True)
""",
        "",
        ["(g,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)"],
    ),
    "a score before it": (
        HEAD
        + """fast = torch.compile(net, backend="aot_eager")
score = fast(x)
(g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
""",
        "",
        ["score = net(x)"],
    ),
    "a name that was bound anew": (
        HEAD
        + """net = torch.compile(net)
score = net(x)
(g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
""",
        "",
        ["score = net._orig_mod(x)"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """What is not compiled, or differentiated once, is left alone."""
    assert rewritten(tmp_path, "eager_for_second_derivative", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The eager module runs there; a second time nothing is left to do."""
    after = rewritten(tmp_path, "eager_for_second_derivative", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "eager_for_second_derivative", after, again) == after


def test_donated_buffers_of_a_second_derivative(tmp_path) -> None:
    """The message about donated buffers stands for the second derivative where the failing line asks for one."""
    after = rewritten(
        tmp_path, "eager_for_second_derivative", PENALTY + IN_LOOP, "torch.autograd.grad", message=DONATED
    )
    assert "critic.forward(x)" in after


def test_donated_buffers_of_two_losses(tmp_path) -> None:
    """A graph that is kept for a second loss is no second derivative, whatever the program asks for elsewhere."""
    source = PENALTY + IN_LOOP + "def step(loss):\n    loss.backward(retain_graph=True)\n"
    assert rewritten(tmp_path, "eager_for_second_derivative", source, "loss.backward", message=DONATED) == source
