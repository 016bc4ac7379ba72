"""A module that chooses among its parts has a zero gradient for the others, and nothing else gets one for a missing path."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEADS = """import torch
from torch import nn
from torch.func import functional_call
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(3, 4)
        self.value = nn.Linear(4, 1)
        self.sign = nn.Linear(4, 1)
    def forward(self, x, kind):
        h = torch.tanh(self.trunk(x))
        return self.value(h) if kind == "value" else self.sign(h)
"""
ADAPT = """def adapt(net, x, y, kind):
    weights = dict(net.named_parameters())
    loss = (functional_call(net, weights, (x, kind)) - y).square().mean()
    grads = torch.autograd.grad(loss, weights.values(), create_graph=True)
    return {n: w - 0.1 * g for (n, w), g in zip(weights.items(), grads)}
"""
TABLE = """import torch
from torch import nn
class Experts(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.heads = nn.ModuleDict({one: nn.Linear(4, 1) for one in names})
    def forward(self, x, task):
        return self.heads[task](self.body(x))
def gradients(model, x, task):
    params = [p for p in model.parameters() if p.requires_grad]
    score = model(x, task)
    return torch.autograd.grad(outputs=score.mean(), inputs=params)
"""
METHODS = (
    HEADS
    + """class Adapter:
    def __init__(self, net):
        self.net = net
    def loss(self, fast, x, y, kind):
        return (functional_call(self.net, fast, (x, kind)) - y).square().mean()
    def adapt(self, x, y, kind):
        weights = {name: p for name, p in self.net.named_parameters()}
        for _ in range(2):
            loss = self.loss(weights, x, y, kind)
            grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
            weights = {n: w - 0.1 * g for (n, w), g in zip(weights.items(), grads)}
        return weights
"""
)
RIGHT = {
    "a module that uses all of itself": HEADS.replace(' if kind == "value" else ', " + ") + ADAPT,
    "a choice by the mode": HEADS.replace('kind == "value"', "self.training") + ADAPT,
    "a part that is cut": HEADS.replace("torch.tanh(self.trunk(x))", "self.trunk(x).detach()") + ADAPT,
    "a loss that is cut": HEADS + ADAPT.replace("(x, kind))", "(x, kind)).detach()"),
    "a forward without the adapted weights": HEADS
    + ADAPT.replace("functional_call(net, weights, (x, kind))", "net(x, kind)"),
    "other weights": HEADS + ADAPT.replace("functional_call(net, weights,", "functional_call(net, slow,"),
    "another module": TABLE.replace("score = model(", "score = teacher("),
    "an input": HEADS
    + "def force(net, x, kind):\n    y = x[:, :3]\n    return torch.autograd.grad(net(x, kind).sum(), y)\n",
    "None is taken": HEADS + ADAPT.replace("create_graph=True", "create_graph=True, allow_unused=True"),
    "options that are not known": HEADS + ADAPT.replace("create_graph=True", "**options"),
}
WRONG = {
    "adapted weights": (
        HEADS + ADAPT,
        ["grads = torch.autograd.grad(loss, weights.values(), create_graph=True, materialize_grads=True)"],
    ),
    "a loss that a method computes": (
        METHODS,
        ["grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True, materialize_grads=True)"],
    ),
    "a table of heads": (
        TABLE,
        ["return torch.autograd.grad(outputs=score.mean(), inputs=params, materialize_grads=True)"],
    ),
    "a statement that chooses": (
        HEADS.replace(
            'return self.value(h) if kind == "value" else self.sign(h)',
            'if kind == "value":\n            return self.value(h)\n        return self.sign(h)',
        )
        + ADAPT,
        ["grads = torch.autograd.grad(loss, weights.values(), create_graph=True, materialize_grads=True)"],
    ),
}


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_a_missing_path_stays_told(tmp_path, source: str) -> None:
    """Where the path may be missing by mistake, nothing hides it."""
    assert rewritten(tmp_path, "zeros_for_unused_parts", source, "autograd.grad(") == source


def test_an_early_torch_has_no_such_option(tmp_path) -> None:
    """The option came with torch 2.1."""
    source = HEADS + ADAPT
    given = {"version": lambda _: "2.0.1"}
    assert rewritten(tmp_path, "zeros_for_unused_parts", source, "autograd.grad(", **given) == source


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_unused_parts_get_zeros(tmp_path, source: str, wanted: list[str]) -> None:
    """The gradients of what was not chosen are zeros; a second time nothing is left to do."""
    after = rewritten(tmp_path, "zeros_for_unused_parts", source, "autograd.grad(")
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "zeros_for_unused_parts", after, "autograd.grad(") == after
