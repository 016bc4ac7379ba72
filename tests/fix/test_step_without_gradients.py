"""An optimizer steps with the gradients of the backward before it, of the model that the loss runs."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import rewritten

HEAD = """import copy
import torch
from torch import nn
net = nn.Linear(3, 1)
"""
LOOP = """for x in torch.randn(4, 5, 3):
    opt.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    opt.step()
"""
OPTIMIZER = "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
CLEARED = LOOP.replace("    opt.zero_grad()\n", "").replace(
    "    opt.step()", "    opt.zero_grad(set_to_none=True)\n    opt.step()"
)


def test_clearing_moves_before_the_backward(tmp_path: pathlib.Path) -> None:
    """A second time nothing is left to do; behind the step, and for another optimizer, it stays."""
    source = HEAD + OPTIMIZER + CLEARED
    after = rewritten(tmp_path, "clear_before_backward", source)
    assert after == source.replace(
        "    loss.backward()\n    opt.zero_grad(set_to_none=True)\n",
        "    opt.zero_grad(set_to_none=True)\n    loss.backward()\n",
    )
    assert rewritten(tmp_path, "clear_before_backward", after) == after
    behind = HEAD + OPTIMIZER + LOOP.replace("    opt.zero_grad()\n", "") + "    opt.zero_grad()\n"
    assert rewritten(tmp_path, "clear_before_backward", behind) == behind
    other = CLEARED.replace("opt.zero_grad", "critic_opt.zero_grad")
    assert rewritten(tmp_path, "clear_before_backward", HEAD + OPTIMIZER + other) == HEAD + OPTIMIZER + other


MANUAL = """class Task(L.LightningModule):
    def training_step(self, batch, index):
        self.manual_backward(self.loss(batch))
        for opt in self.optimizers():
            opt.zero_grad()
            opt.step()
"""


def test_manual_optimization_clears_behind_its_steps(tmp_path: pathlib.Path) -> None:
    """A rule of its own, for a loop over optimizers too; the rule for plain loops leaves it alone."""
    manual = {"options": {"manual": True}}
    after = rewritten(tmp_path, "clear_before_backward", MANUAL, **manual)
    assert after == MANUAL.replace(
        "            opt.zero_grad()\n            opt.step()\n", "            opt.step()\n            opt.zero_grad()\n"
    )
    assert rewritten(tmp_path, "clear_before_backward", after, **manual) == after
    assert rewritten(tmp_path, "clear_before_backward", MANUAL) == MANUAL
    plain = HEAD + OPTIMIZER + CLEARED
    assert rewritten(tmp_path, "clear_before_backward", plain, **manual) == plain


SHARPNESS = """class Task(L.LightningModule):
    def training_step(self, batch, index):
        opt = self.optimizers()
        self.manual_backward(self.loss(batch))
        moves = self.climb()
        opt.zero_grad()
        self.manual_backward(self.loss(batch))
        self.descend(moves)
        opt.step()
"""


def test_sharpness_aware_minimisation_stays(tmp_path: pathlib.Path) -> None:
    """The first gradients are used up by the climb; the step is by those of the second backward."""
    assert rewritten(tmp_path, "clear_before_backward", SHARPNESS, options={"manual": True}) == SHARPNESS


def test_a_loop_that_goes_backward_itself_stays(tmp_path: pathlib.Path) -> None:
    """A probe before the loop: its gradients are meant to be cleared."""
    source = HEAD + OPTIMIZER + "net(torch.ones(1, 3)).sum().backward()\n" + LOOP
    assert rewritten(tmp_path, "clear_before_backward", source) == source


WRONG = {
    "made anew": (
        HEAD + OPTIMIZER + "net = nn.Linear(3, 1)\n" + LOOP,
        HEAD + "net = nn.Linear(3, 1)\n" + OPTIMIZER + LOOP,
    ),
    "copied": (
        HEAD + OPTIMIZER + "net = copy.deepcopy(net)\n" + LOOP,
        HEAD + "net = copy.deepcopy(net)\n" + OPTIMIZER + LOOP,
    ),
    "another model": (
        HEAD + "other = nn.Linear(3, 1)\n" + OPTIMIZER.replace("net", "other") + LOOP,
        HEAD + "other = nn.Linear(3, 1)\n" + OPTIMIZER + LOOP,
    ),
    "a model that comes later": (
        HEAD.replace("net", "other") + OPTIMIZER.replace("net", "other") + "net = nn.Linear(3, 1)\n" + LOOP,
        HEAD.replace("net", "other") + "net = nn.Linear(3, 1)\n" + OPTIMIZER + LOOP,
    ),
}
RIGHT = {
    "its own": HEAD + OPTIMIZER + LOOP,
    "one that is handed on": HEAD + OPTIMIZER + "def loss_of(model, x):\n    return model(x).mean()\nfor x in torch.randn(4, 5, 3):\n    loss_of(net, x).backward()\n    opt.step()\n",
    "wrapped": HEAD + OPTIMIZER + "net = torch.compile(net)\n" + LOOP,
    "moved to a device": HEAD + OPTIMIZER + "net = net.to('cpu')\n" + LOOP,
    "two of them": HEAD + "other = nn.Linear(3, 1)\n" + OPTIMIZER + "more = torch.optim.SGD(other.parameters(), lr=0.1)\n" + LOOP,
}  # fmt: skip


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_the_optimizer_gets_the_model_that_runs(tmp_path: pathlib.Path, source: str, wanted: str) -> None:
    """A second time nothing is left to do."""
    after = rewritten(tmp_path, "optimizer_of_model", source)
    assert after == wanted
    assert rewritten(tmp_path, "optimizer_of_model", after) == after


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path: pathlib.Path, source: str) -> None:
    """An optimizer of the model that runs, also where a function is given it, is left alone."""
    assert rewritten(tmp_path, "optimizer_of_model", source) == source
