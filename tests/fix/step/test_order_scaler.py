"""GradScaler's calls stand in their order."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, diff_lines, rewritten

HEAD = """import torch
from torch import nn
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for step in range(4):
    loss = net(torch.randn(8, 4)).pow(2).mean()
"""
RIGHT = {
    "the plain order": (
        HEAD + "    scaler.scale(loss).backward()\n    scaler.step(opt)\n    scaler.update()\n",
        "loss =",
        {},
    ),
    "with clipping": (
        HEAD
        + "    scaler.scale(loss).backward()\n    scaler.unscale_(opt)\n    nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    scaler.step(opt)\n    scaler.update()\n",
        "loss =",
        {},
    ),
    "accumulation": (
        HEAD
        + "    scaler.scale(loss).backward()\n    if step % 2:\n        scaler.unscale_(opt)\n        scaler.step(opt)\n        scaler.update()\n",
        "loss =",
        {},
    ),
    "a loss scaled under a name": (
        HEAD + "    scaled = scaler.scale(loss)\n    scaled.backward()\n    scaler.step(opt)\n    scaler.update()\n",
        "loss =",
        {},
    ),
    "no scaler": (HEAD + "    loss.backward()\n    opt.step()\n", "loss =", {}),
}
WRONG = {
    "updated in some rounds": (
        HEAD
        + "    scaler.scale(loss).backward()\n    scaler.step(opt)\n    if step % 2:\n        scaler.scale(g).backward()\n        scaler.step(g_opt)\n        scaler.update()\n",
        "scaler.step(opt)",
        {"message": "step() has already been called since the last update()."},
        ["scaler.update()"],
    ),
    "a loss that is not scaled": (
        HEAD + "    loss.backward()\n    scaler.step(opt)\n    scaler.update()\n",
        "scaler.step",
        {},
        ["scaler.scale(loss).backward()"],
    ),
    "a sum that is not scaled": (
        HEAD + "    (loss + 1).backward()\n    scaler.step(opt)\n    scaler.update()\n",
        "scaler.step",
        {},
        ["scaler.scale(loss + 1).backward()"],
    ),
    "unscaled with every batch": (
        HEAD
        + "    scaler.scale(loss).backward()\n    scaler.unscale_(opt)\n    if step % 2:\n        scaler.step(opt)\n        scaler.update()\n",
        "scaler.unscale_",
        {},
        ["scaler.unscale_(opt)"],
    ),
    "unscaled twice in a row": (
        HEAD
        + "    scaler.scale(loss).backward()\n    scaler.unscale_(opt)\n    scaler.unscale_(opt)\n    scaler.step(opt)\n    scaler.update()\n",
        "scaler.unscale_",
        {},
        [],
    ),
    "stepped past the scaler": (
        HEAD + "    scaler.scale(loss).backward()\n    opt.step()\n",
        "opt.step",
        {},
        ["scaler.step(opt)", "scaler.update()"],
    ),
    "never updated": (
        HEAD + "    scaler.scale(loss).backward()\n    scaler.step(opt)\n",
        "scaler.step",
        {"message": "step() has already been called since the last update()."},
        ["scaler.update()"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """A loop in the right order, with or without accumulation, is left alone."""
    assert rewritten(tmp_path, "order_scaler", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The call that is out of order moves, and nothing else; a second time nothing is left to do."""
    after = rewritten(tmp_path, "order_scaler", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "order_scaler", after, None if at not in after else at or None, **given) == after


def test_what_looks_at_gradients_before_the_step_finds_them_unscaled(tmp_path) -> None:
    """They were unscaled there before, too."""
    body = "    scaler.scale(loss).backward()\n    scaler.unscale_(opt)\n    if step % 2:\n        log(net)\n        scaler.step(opt)\n        scaler.update()\n"
    message = "unscale_() has already been called on this optimizer since the last update()."
    after = rewritten(tmp_path, "order_scaler", HEAD + body, "scaler.unscale_(opt)", message=message)
    assert after.endswith(
        "    if step % 2:\n        scaler.unscale_(opt)\n        log(net)\n        scaler.step(opt)\n        scaler.update()\n"
    )


HELPER = """import torch
from torch import nn


def norm_of(net):
    scaler.unscale_(opt)
    return sum(p.grad.norm() for p in net.parameters())


net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for step in range(4):
    loss = net(torch.randn(8, 4)).pow(2).mean()
    opt.zero_grad()
    scaler.scale(loss).backward()
    norm = norm_of(net)
    scaler.unscale_(opt)  # again
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
"""
TWICE = "unscale_() has already been called on this optimizer since the last update()."


@pytest.mark.parametrize(
    ("source", "is_dropped"),
    [
        (HELPER, True),
        (HELPER.replace("    norm = norm_of(net)\n", ""), False),
        (HELPER.replace("    scaler.step(opt)\n", "    if step % 2:\n        scaler.step(opt)\n"), False),
    ],
    ids=["in a helper", "nowhere else", "of batches that are gathered"],
)
def test_what_a_helper_has_unscaled(tmp_path, source: str, is_dropped: bool) -> None:
    """The second call of one step goes; where the step is made more seldom another one is to move."""
    after = rewritten(tmp_path, "order_scaler", source, "# again", message=TWICE)
    assert (after == source.replace("    scaler.unscale_(opt)  # again\n", "")) == is_dropped


BEHIND = HELPER.replace("    norm = norm_of(net)\n", "").replace("# again", "").replace(
    "    nn.utils.clip", "    if step > 1:\n        print(norm_of(net))\n    nn.utils.clip"
)  # fmt: skip


@pytest.mark.parametrize(
    ("source", "is_dropped"),
    [
        (BEHIND, True),
        (BEHIND + "    scaler.scale(net(torch.ones(1, 4)).sum()).backward()\n    norm_of(net)\n", False),
        (BEHIND.replace("    scaler.unscale_(opt)  \n", ""), False),
    ],
    ids=["behind the step's own", "called elsewhere too", "nowhere else"],
)
def test_a_helper_that_unscales_again(tmp_path, source: str, is_dropped: bool) -> None:
    """Its call goes, where each call of the helper stands behind the step's own."""
    at = "    scaler.unscale_(opt)\n    return"
    after = rewritten(tmp_path, "order_scaler", source, "    scaler.unscale_(opt)", message=TWICE)
    assert (after == source.replace(at, "    return")) == is_dropped


CALLBACKS = """import torch


class Clip:
    def after_backward(self, loop):
        loop.scaler.unscale_(loop.opt)
        torch.nn.utils.clip_grad_norm_(loop.net.parameters(), 1.0)


class Watch:
    def after_backward(self, loop):
        if loop.step % 2:
            return
        loop.scaler.unscale_(loop.opt)  # again
        print(loop.net.weight.grad)


class Loop:
    def run(self, x):
        self.scaler.scale(self.net(x).sum()).backward()
        for one in self.callbacks:
            one.after_backward(self)
        self.scaler.step(self.opt)
        self.scaler.update()
"""
ELSEWHERE = {
    "an if round the first": CALLBACKS.replace(
        "        loop.scaler.unscale_(loop.opt)\n        torch",
        "        if loop.clips:\n            loop.scaler.unscale_(loop.opt)\n        torch",
    ),
    "a way past the first": CALLBACKS.replace(
        "        loop.scaler.unscale_(loop.opt)\n        torch",
        "        if loop.plain:\n            return\n        loop.scaler.unscale_(loop.opt)\n        torch",
    ),
    "another method": CALLBACKS.replace("def after_backward(self, loop):\n        loop", "def before_step(self, loop):\n        loop"),
}  # fmt: skip


def test_what_another_callback_has_unscaled(tmp_path) -> None:
    """The later one goes, where the other's runs in each step."""
    after = rewritten(tmp_path, "order_scaler", CALLBACKS, "# again", message=TWICE)
    assert diff_lines(CALLBACKS, after) == ["-        loop.scaler.unscale_(loop.opt)  # again"]


@pytest.mark.parametrize("source", ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_callback_that_may_not_have_unscaled(tmp_path, source: str) -> None:
    assert rewritten(tmp_path, "order_scaler", source, "# again", message=TWICE) == source


EARLY = """import torch
class Engine:
    def __init__(self, net):
        self.net, self.opt = net, torch.optim.SGD(net.parameters(), 0.1)
        self.scaler = torch.amp.GradScaler("cpu")
    def step(self, loss):
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.unscale_(self.opt)
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.scaler.update()
"""


def test_a_step_before_unscaling(tmp_path) -> None:
    """It follows the clipping, right before the update."""
    message = "unscale_() is being called after step()."
    after = rewritten(tmp_path, "order_scaler", EARLY, "unscale_", message=message)
    assert diff_lines(EARLY, after) == ["-        self.scaler.step(self.opt)", "+        self.scaler.step(self.opt)"]
    assert after.index("clip_grad_norm_") < after.index("scaler.step") < after.index("update")
    assert rewritten(tmp_path, "order_scaler", after, "unscale_", message=message) == after


def test_a_step_before_a_helper_that_unscales(tmp_path) -> None:
    """The clip of a method of its own, for each of several optimizers."""
    source = EARLY.replace(
        """        self.scaler.unscale_(self.opt)
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.scaler.update()
""",
        """        self.clip()
        self.scaler.update()
    def clip(self):
        self.scaler.unscale_(self.opt)
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
""",
    )
    after = rewritten(tmp_path, "order_scaler", source, "unscale_", message="unscale_() is being called after step().")
    assert after.index("self.clip()") < after.index("scaler.step") < after.index("scaler.update")
