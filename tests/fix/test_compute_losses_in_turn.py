"""Losses that were computed together are each computed when their turn to step comes."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SAID = "one of the variables needed for gradient computation has been modified by an inplace operation"
HEAD = """import torch
from torch import nn
import torch.nn.functional as F


class Agent:
    def __init__(self):
        self.critic = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
        self.actor = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        self.opts = {"critic": torch.optim.Adam(self.critic.parameters()), "actor": torch.optim.Adam(self.actor.parameters())}
        self.seen, self.memory = None, [torch.randn(5, 4)] * 9

    def q(self, s, a):
        return self.critic(torch.cat([s, a], -1)).squeeze(-1)

    def losses(self, s, a, r):
        critic = F.mse_loss(self.q(s, a), r)
        return {"critic": critic, "actor": -self.q(s, self.actor(s)).mean()}

    def pair(self, s, a, r):
        found = self.losses(s, a, r)
        return found["critic"], found["actor"]

    def remembering(self, s, a, r):
        self.seen = self.losses(s, a, r)
        return self.seen

    def drawing(self, a, r):
        return self.losses(self.memory.pop(), a, r)

"""
TAIL = """

torch.manual_seed(0)
agent = Agent()
for s, a, r in zip(torch.randn(3, 5, 4), torch.randn(3, 5, 2), torch.randn(3, 5)):
    agent.update(s, a, r)
"""
ROUND = """            self.opts[name].zero_grad()
            loss.backward()
            self.opts[name].step()
"""


def _update(body: str) -> str:
    return f"{HEAD}    def update(self, s, a, r):\n{body}{TAIL}"


RIGHT = {
    "each loss in its turn": _update(
        "        for name in self.opts:\n            loss = self.losses(s, a, r)[name]\n" + ROUND
    ),
    "a function that keeps what it made": _update(
        "        for name, loss in self.remembering(s, a, r).items():\n" + ROUND
    ),
    "a function that takes from a memory": _update("        for name, loss in self.drawing(a, r).items():\n" + ROUND),
    "gradients that nobody clears": _update(
        "        for name, loss in self.losses(s, a, r).items():\n"
        + ROUND.replace("self.opts[name].zero_grad()", "pass")
    ),
    "one step behind all backwards": _update(
        "        for name, loss in self.losses(s, a, r).items():\n            self.opts[name].zero_grad()\n"
        "            loss.backward()\n        for opt in self.opts.values():\n            opt.step()\n"
    ),
    "losses that are read beside the loop": _update(
        """        losses = {"critic": F.mse_loss(self.q(s, a), r), "actor": -self.q(s, self.actor(s)).mean()}
        print(sum(losses.values()))
        for name, loss in losses.items():
"""
        + ROUND
    ),
    "the batch of the next round": _update(
        "        for name, loss in self.losses(s, a, r).items():\n" + ROUND + "            s = s + 1\n"
    ),
}
WRONG = {
    "a dictionary that a method gives": (
        _update("        for name, loss in self.losses(s, a, r).items():\n" + ROUND),
        ["-        for name, loss in self.losses(s, a, r).items():", '+        for name in ("critic", "actor"):',
         "+            loss = self.losses(s, a, r)[name]"],
    ),
    "a dictionary with a name": (
        _update("        losses = self.losses(s, a, r)\n        for name, loss in losses.items():\n" + ROUND + "        return losses\n"),
        ["+            loss = self.losses(s, a, r)[name]"],
    ),
    "a tuple beside its optimizers": (
        _update(
            "        for loss, opt in zip(self.pair(s, a, r), self.opts.values()):\n            opt.zero_grad()\n"
            "            (0.5 * loss).backward()\n            opt.step()\n"
        ),
        ["-        for loss, opt in zip(self.pair(s, a, r), self.opts.values()):",
         "+        for index, (loss, opt) in enumerate(zip(self.pair(s, a, r), self.opts.values())):",
         "+            loss = self.pair(s, a, r)[index]"],
    ),
    "a tuple that is counted": (
        _update(
            '        for i, loss in enumerate(self.pair(s, a, r)):\n            name = ("critic", "actor")[i]\n' + ROUND
        ),
        ["+            loss = self.pair(s, a, r)[i]"],
    ),
    "a display of expressions": (
        _update(
            """        losses = {"critic": F.mse_loss(self.q(s, a), r), "actor": -self.q(s, self.actor(s)).mean()}
        for name, loss in losses.items():
""" + ROUND
        ),
        ['-        losses = {"critic": F.mse_loss(self.q(s, a), r), "actor": -self.q(s, self.actor(s)).mean()}',
         '+        losses = {"critic": lambda: F.mse_loss(self.q(s, a), r), "actor": lambda: -self.q(s, self.actor(s)).mean()}',
         "+            loss = loss()"],
    ),
    "a display of names": (
        _update(
            """        critic_loss = F.mse_loss(self.q(s, a), r)
        value = self.q(s, self.actor(s))
        actor_loss = -value.mean()
        for loss, opt in zip([critic_loss, actor_loss], self.opts.values()):
            opt.zero_grad()
            loss.backward()
            opt.step()
"""
        ),
        ["-        critic_loss = F.mse_loss(self.q(s, a), r)", "-        value = self.q(s, self.actor(s))",
         "-        actor_loss = -value.mean()",
         "-        for loss, opt in zip([critic_loss, actor_loss], self.opts.values()):",
         "+        for loss, opt in zip([lambda: F.mse_loss(self.q(s, a), r), lambda: -self.q(s, self.actor(s)).mean()], self.opts.values()):",
         "+            loss = loss()"],
    ),
    "taken by key from a display": (
        _update(
            """        found = {"critic": F.mse_loss(self.q(s, a), r), "actor": -self.q(s, self.actor(s)).mean()}
        for name, opt in self.opts.items():
            opt.zero_grad()
            found[name].backward()
            opt.step()
        return {name: loss.item() for name, loss in found.items()}
"""
        ),
        ['-        found = {"critic": F.mse_loss(self.q(s, a), r), "actor": -self.q(s, self.actor(s)).mean()}',
         '+        found = {"critic": lambda: F.mse_loss(self.q(s, a), r), "actor": lambda: -self.q(s, self.actor(s)).mean()}',
         "+            found[name] = found[name]()"],
    ),
    "taken by key from what a method gives": (
        _update("        found = self.losses(s, a, r)\n        for name in self.opts:\n" + ROUND.replace("loss.", "found[name].")),
        ["+            found[name] = self.losses(s, a, r)[name]"],
    ),
    "one after another, unpacked": (
        _update(
            """        critic_loss, actor_loss = self.pair(s, a, r)
        self.opts["critic"].zero_grad()
        critic_loss.backward()
        self.opts["critic"].step()
        self.opts["actor"].zero_grad()
        actor_loss.backward()
        self.opts["actor"].step()
"""
        ),
        ["+        actor_loss = self.pair(s, a, r)[1]"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the order is right, or where a second call would not give the same batch's losses."""
    assert rewritten(tmp_path, "compute_losses_in_turn", source, "loss.backward()", message=SAID) == source


@pytest.mark.parametrize(("source", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """Each round computes its own loss; a second time nothing is left to do."""
    after = rewritten(tmp_path, "compute_losses_in_turn", source, ".backward()", message=SAID)
    assert diff_lines(source, after) == changes
    assert rewritten(tmp_path, "compute_losses_in_turn", after, ".backward()", message=SAID) == after
