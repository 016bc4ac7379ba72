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
        self.seen, self.memory, self.count = None, [torch.randn(5, 4)] * 9, 1

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

    def apart(self, s, a, r):
        return {"critic": F.mse_loss(self.q(s, a), r), "actor": self.actor(s).mean()}

    def counted(self, s, a, r):
        return {"critic": F.mse_loss(self.q(s, a), r), "actor": -self.q(s, self.actor(s)).mean() / self.count}

    def apply(self, opt, loss):
        opt.zero_grad()
        loss.backward()
        opt.step()

    def count_and_apply(self, opt, loss):
        self.count += 1
        self.apply(opt, loss)

    def go_back(self, loss):
        loss.backward()

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
    "losses of networks that share nothing": _update(
        "        for name, loss in self.apart(s, a, r).items():\n            self.apply(self.opts[name], loss)\n"
    ),
    "a pair that shares nothing": _update(
        """        found = self.apart(s, a, r)
        self.apply(self.opts["critic"], found["critic"])
        self.apply(self.opts["actor"], found["actor"])
"""
    ),
    "a display that shares nothing": _update(
        """        found = {"critic": F.mse_loss(self.q(s, a), r), "actor": self.actor(s).mean()}
        for name in found:
            self.apply(self.opts[name], found[name])
"""
    ),
    "a function that does not step": _update(
        """        for name, loss in self.losses(s, a, r).items():
            self.opts[name].zero_grad()
            self.go_back(loss)
        for opt in self.opts.values():
            opt.step()
"""
    ),
    "a function that keeps what the losses read": _update(
        """        found = self.counted(s, a, r)
        for name in found:
            self.count_and_apply(self.opts[name], found[name])
"""
    ),
    "a loop that keeps what the losses read": _update(
        "        for name, loss in self.counted(s, a, r).items():\n" + ROUND + "            self.count += 1\n"
    ),
    "losses that a function computes in their turn": _update(
        "        for name in self.opts:\n            self.apply(self.opts[name], self.losses(s, a, r)[name])\n"
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
    "a dictionary, applied by a method": (
        _update("        for name, loss in self.losses(s, a, r).items():\n            self.apply(self.opts[name], loss)\n"),
        ["-        for name, loss in self.losses(s, a, r).items():", '+        for name in ("critic", "actor"):',
         "+            loss = self.losses(s, a, r)[name]"],
    ),
    "taken by key and applied": (
        _update(
            """        found = self.losses(s, a, r)
        for name in ("critic", "actor"):
            self.count_and_apply(self.opts[name], found[name])
        return {name: loss.item() for name, loss in found.items()}
"""
        ),
        ["+            found[name] = self.losses(s, a, r)[name]"],
    ),
    "taken by a key that is made up, under a name": (
        _update(
            """        found = dict_of(self, s, a, r)
        for name in self.opts:
            loss = found[f"{name}_loss"]
            self.opts[name].zero_grad()
            self.go_back(loss)
            self.opts[name].step()
"""
        ).replace("class Agent", """def dict_of(agent, s, a, r):
    critic, actor = agent.pair(s, a, r)
    return {"critic_loss": critic, "actor_loss": actor}


class Agent"""),
        ['+            found[f"{name}_loss"] = dict_of(self, s, a, r)[f"{name}_loss"]'],
    ),
    "one after another, applied by a method": (
        _update(
            """        found = self.losses(s, a, r)
        self.apply(self.opts["critic"], found["critic"])
        self.apply(self.opts["actor"], loss=found["actor"])
"""
        ),
        ['-        self.apply(self.opts["actor"], loss=found["actor"])',
         '+        self.apply(self.opts["actor"], loss=self.losses(s, a, r)["actor"])'],
    ),
    "one after another, unpacked and applied": (
        _update(
            """        critic_loss, actor_loss = self.pair(s, a, r)
        self.apply(self.opts["critic"], critic_loss)
        self.apply(self.opts["actor"], actor_loss)
        return critic_loss.item(), actor_loss.item()
"""
        ),
        ["+        actor_loss = self.pair(s, a, r)[1]"],
    ),
    "pairs that a loop applies": (
        _update(
            """        critic_loss, actor_loss = self.pair(s, a, r)
        for opt, loss in ((self.opts["critic"], critic_loss), (self.opts["actor"], actor_loss)):
            self.apply(opt, loss)
        return actor_loss.item()
"""
        ),
        ['-        for opt, loss in ((self.opts["critic"], critic_loss), (self.opts["actor"], actor_loss)):',
         '+        for opt, loss in ((self.opts["critic"], lambda: self.pair(s, a, r)[0]), (self.opts["actor"], lambda: self.pair(s, a, r)[1])):',
         "+            loss = loss()"],
    ),
    "pairs of what is read again": (
        _update(
            """        critic_loss = F.mse_loss(self.q(s, a), r)
        move = self.actor(s)
        actor_loss = -self.q(s, move).mean() + 0.1 * move.detach().mean()
        for opt, loss in [(self.opts["critic"], critic_loss), (self.opts["actor"], actor_loss)]:
            self.apply(opt, loss)
        print(critic_loss.item())
"""
        ),
        ["-        actor_loss = -self.q(s, move).mean() + 0.1 * move.detach().mean()",
         '-        for opt, loss in [(self.opts["critic"], critic_loss), (self.opts["actor"], actor_loss)]:',
         '+        for opt, loss in [(self.opts["critic"], lambda: F.mse_loss(self.q(s, a), r)), '
         '(self.opts["actor"], lambda: -self.q(s, self.actor(s)).mean() + 0.1 * move.detach().mean())]:',
         "+            loss = loss()"],
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


@pytest.mark.torch
@pytest.mark.parametrize("source", [one for one, _ in WRONG.values()], ids=WRONG)
def test_mended_programs_step_as_if_each_loss_had_its_own_call(source: str, tmp_path: pathlib.Path) -> None:
    """The actor's loss goes through the critic that has been stepped, and both end with the same weights as in that program."""
    torch = pytest.importorskip("torch")
    after = rewritten(tmp_path, "compute_losses_in_turn", source, ".backward()", message=SAID)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        exec(source, {})  # noqa: S102 - the program of this test
    weights = []
    for text in (after, RIGHT["each loss in its turn"]):
        space: dict = {}
        exec(text, space)  # noqa: S102 - likewise
        weights.append([*space["agent"].critic.parameters(), *space["agent"].actor.parameters()])
    mixed = "0.1 * move" in source or "(0.5 * loss)" in source  # these weigh their losses otherwise
    assert mixed or all(torch.equal(one, other) for one, other in zip(*weights, strict=True))
