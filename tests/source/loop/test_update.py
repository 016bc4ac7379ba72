"""Which calls run a function of the program that goes back through an argument of theirs, and what else it does."""

from __future__ import annotations

import ast
import pathlib

import pytest

from explainer.source.loop.update import find_updates
from tests.fix.rewriting import write

HEAD = """import torch
from torch import nn

net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)


"""
BODY = """    opt.zero_grad()
    loss.backward()
    opt.step()


"""
NONE = {
    "a loss that the function computes": "def fit(model, x):\n    loss = model(x).mean()\n" + BODY + "fit(net, x)\n",
    "what a method of the model gives": "def fit(model, x):\n    loss = model.loss(x)\n" + BODY + "fit(net, x)\n",
    "a call of something else of that name": "def step(loss):\n" + BODY + "opt.step(loss)\n",
    "a function that is handed on": "def fit(loss):\n" + BODY + "each(fit, losses)\n",
    "several losses in one": "def fit(*losses):\n    loss = sum(losses)\n" + BODY + "fit(a, b)\n",
    "no backward": "def fit(opt, loss):\n    opt.zero_grad()\n    opt.step()\n\n\nfit(opt, a)\n",
    "a custom function": "class F(torch.autograd.Function):\n    def backward(ctx, loss):\n        return loss\n\n\nF.apply(a)\n",
}
FOUND = {
    "a function": ("def fit(opt, loss):\n" + BODY + "fit(opt, a)\n", ("a", "opt", True, True)),
    "by keyword": ("def fit(opt, loss):\n" + BODY + "fit(loss=a, opt=opt)\n", ("a", "opt", True, True)),
    "an optimizer from outside": ("def fit(loss):\n" + BODY + "fit(a)\n", ("a", "opt", True, True)),
    "weighted": (
        "def fit(loss, scale=1.0):\n    loss = loss * scale\n" + BODY + "fit(a.mean(), 0.5)\n",
        ("a.mean()", "opt", True, True),
    ),
    "divided in place": ("def fit(loss, n):\n    loss /= n\n" + BODY + "fit(net(x), 4)\n", ("net(x)", "opt", True, True)),
    "scaled": (
        "def fit(loss, scaler):\n    opt.zero_grad()\n    scaler.scale(loss.mean()).backward()\n    scaler.step(opt)\n"
        "    scaler.update()\n\n\nfit(a, scaler)\n",
        ("a", "opt", True, True),
    ),
    "cleared only now and then": (
        "def fit(loss, first):\n    if first:\n        opt.zero_grad()\n    loss.backward()\n    opt.step()\n\n\nfit(a, True)\n",
        ("a", "opt", False, True),
    ),
    "cleared behind": (
        "def fit(loss):\n    loss.backward()\n    opt.step()\n    opt.zero_grad()\n\n\nfit(a)\n",
        ("a", "opt", False, True),
    ),
    "stepped elsewhere": ("def fit(loss):\n    loss.backward()\n\n\nfit(a)\n", ("a", None, False, False)),
    "one of several optimizers": (
        "def fit(loss, key):\n    opts[key].zero_grad()\n    loss.backward()\n    opts[key].step()\n\n\nfit(a, 'net')\n",
        ("a", None, True, True),
    ),
}  # fmt: skip
METHODS = """class Learner:
    def __init__(self):
        self.opt, self.count = opt, 0

    def go_back(self, loss):
        self.opt.zero_grad(set_to_none=True)
        loss.backward()

    def apply(self, optimizer, loss):
        self.go_back(loss)
        optimizer.step()
        self.count += 1

    def learn(self, batch):
        self.apply(self.opt, self.loss(batch))


class Plain(Learner):
    def loss(self, batch):
        return net(batch).mean()
"""


def _found(folder: pathlib.Path, source: str) -> list[tuple[str, str | None, bool, bool]]:
    updates = find_updates(write(folder, {"train.py": HEAD + source}))
    return [(ast.unparse(one.loss), one.optimizer, one.clears, one.steps) for one in updates]


@pytest.mark.parametrize("source", NONE.values(), ids=NONE)
def test_other_calls_are_none(source: str, tmp_path: pathlib.Path) -> None:
    """What is differentiated is no argument of theirs, or not known."""
    assert _found(tmp_path, source) == []


@pytest.mark.parametrize(("source", "expected"), FOUND.values(), ids=FOUND)
def test_the_loss_and_the_optimizer_of_a_call(
    source: str, expected: tuple[str, str | None, bool, bool], tmp_path: pathlib.Path
) -> None:
    """By the names that they have where the call stands."""
    assert _found(tmp_path, source) == [expected]


def test_methods_that_run_one_another(tmp_path: pathlib.Path) -> None:
    """What the inner one clears counts for the outer one, and what either keeps."""
    updates = find_updates(write(tmp_path, {"train.py": HEAD + METHODS}))
    said = {
        ast.unparse(one.call): (ast.unparse(one.loss), one.optimizer, one.clears, one.steps, one.keeps)
        for one in updates
    }
    assert said == {
        "self.go_back(loss)": ("loss", None, True, False, frozenset()),
        "self.apply(self.opt, self.loss(batch))": ("self.loss(batch)", "self.opt", True, True, {"count"}),
    }
