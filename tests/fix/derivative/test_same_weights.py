"""The weights of an inner loop: what the forward ran with and what the gradient is asked for by are the same."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

UNUSED = "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."
TOP = "import torch\nimport torch.nn.functional as F\nfrom torch.func import functional_call\n"
LEARNER = """class Learner:
    def __init__(self, net):
        self.net = net

    def loss(self, weights, x, y):
        return F.mse_loss(functional_call(self.net, weights, (x,)), y)

    def slope(self, loss, weights):
        return torch.autograd.grad(loss, tuple(self.net.parameters()))

    def adapt(self, x, y):
        fast = {k: p.detach().clone().requires_grad_() for k, p in self.net.named_parameters()}
        loss = self.loss(fast, x, y)
        return self.slope(loss, fast)
"""
WRONG = {
    "in one function": (
        "def adapt(net, x, y):\n    fast = {k: p.detach().requires_grad_() for k, p in net.named_parameters()}\n    out = functional_call(net, fast, (x,))\n    loss = F.mse_loss(out, y)\n    return torch.autograd.grad(loss, list(net.parameters()))\n",
        ["-    return torch.autograd.grad(loss, list(net.parameters()))", "+    return torch.autograd.grad(loss, list(fast.values()))"],
    ),
    "a loss that is handed on": (
        LEARNER,
        ["-        return torch.autograd.grad(loss, tuple(self.net.parameters()))", "+        return torch.autograd.grad(loss, tuple(weights.values()))"],
    ),
    "a forward with the module's own": (
        "def adapt(net, x, y):\n    weights = dict(net.named_parameters())\n    for _ in range(2):\n        loss = net(x).sum()\n        grads = torch.autograd.grad(loss, tuple(weights.values()), create_graph=True)\n        weights = {n: w - 0.1 * g for (n, w), g in zip(weights.items(), grads)}\n",
        ["-        loss = net(x).sum()", "+        loss = functional_call(net, weights, (x,)).sum()"],
    ),
    "of copies, by two inputs": (
        "def adapt(net, x, t, y):\n    fast = {n: p.clone() for n, p in net.named_parameters()}\n    loss = F.mse_loss(net(x, t), y)\n    return torch.autograd.grad(loss, fast.values())\n",
        ["-    loss = F.mse_loss(net(x, t), y)", "+    loss = F.mse_loss(functional_call(net, fast, (x, t)), y)"],
    ),
}  # fmt: skip
RIGHT = {
    "another caller has a loss of the module's own": LEARNER + "\n    def own(self, x, y):\n        return self.slope(F.mse_loss(self.net(x), y), dict(self.net.named_parameters()))\n",
    "weights that the helper does not get": LEARNER.replace("(self, loss, weights):", "(self, loss):").replace("slope(loss, fast)", "slope(loss)"),
    "a part of the module": "def f(net, x):\n    fast = {n: p.clone() for n, p in net.named_parameters()}\n    return torch.autograd.grad(net.head(x).sum(), list(fast.values()))\n",
    "two sets of weights": "def f(net, a, b, x):\n    loss = functional_call(net, a, (x,)).sum() + functional_call(net, b, (x,)).sum()\n    return torch.autograd.grad(loss, list(net.parameters()))\n",
}  # fmt: skip


@pytest.mark.parametrize(("body", "changes"), WRONG.values(), ids=WRONG)
def test_both_have_the_same_weights(body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """A second time nothing is left to do."""
    after = rewritten(tmp_path, "same_weights", TOP + body, "autograd.grad", message=UNUSED)
    assert diff_lines(TOP + body, after) == changes
    assert rewritten(tmp_path, "same_weights", after, "autograd.grad", message=UNUSED) == after


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(body: str, tmp_path: pathlib.Path) -> None:
    """Where it is not one dictionary that both should have."""
    assert rewritten(tmp_path, "same_weights", TOP + body, "autograd.grad", message=UNUSED) == TOP + body


def test_another_failure_says_nothing(tmp_path: pathlib.Path) -> None:
    """A gradient that fails for its shape has nothing to do with whose weights they are."""
    body = TOP + next(iter(WRONG.values()))[0]
    assert rewritten(tmp_path, "same_weights", body, "autograd.grad", message="Mismatch in shape") == body
