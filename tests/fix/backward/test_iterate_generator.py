"""A loop that steps each loss goes over the generator itself; what is used otherwise too stays."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

STALE = "one of the variables needed for gradient computation has been modified by an inplace operation"
AGENT = """import torch
class Base:
    def losses(self, batch):
        raise NotImplementedError
class Agent(Base):
    def losses(self, batch):
        yield "critic", self.q(batch).mean()
        yield "actor", self.q(self.pi(batch)).mean()
"""
WRONG = {
    "a comprehension": (
        "def update(agent, batch, minimise):\n    losses = dict(agent.losses(batch))\n    return {k: minimise(k, v) for k, v in losses.items()}  # here\n",
        ["-    losses = dict(agent.losses(batch))", "-    return {k: minimise(k, v) for k, v in losses.items()}  # here", "+    return {k: minimise(k, v) for k, v in agent.losses(batch)}  # here"],
    ),
    "a loop over a list": (
        "def update(agent, batch, opts):\n    losses = list(agent.losses(batch))\n    for k, loss in losses:\n        loss.backward()  # here\n        opts[k].step()\n",
        ["-    losses = list(agent.losses(batch))", "-    for k, loss in losses:", "+    for k, loss in agent.losses(batch):"],
    ),
}  # fmt: skip
RIGHT = {
    "used later too": "def update(agent, batch, minimise):\n    losses = dict(agent.losses(batch))\n    done = {k: minimise(k, v) for k, v in losses.items()}  # here\n    return losses\n",
    "a function that returns": AGENT.replace("yield", "return") + "def update(agent, batch, minimise):\n    losses = dict(agent.losses(batch))\n    return {k: minimise(k, v) for k, v in losses.items()}  # here\n",
}  # fmt: skip


@pytest.mark.parametrize(("body", "changes"), WRONG.values(), ids=WRONG)
def test_each_loss_comes_in_its_turn(body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """A second time nothing is left to do."""
    at = "for k, loss" if "for k, loss" in body else "# here"
    after = rewritten(tmp_path, "iterate_generator", AGENT + body, at, message=STALE)
    assert diff_lines(AGENT + body, after) == changes
    at = at if at in after else "agent.losses"
    assert rewritten(tmp_path, "iterate_generator", after, at, message=STALE) == after


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_other_losses_stay(body: str, tmp_path: pathlib.Path) -> None:
    source = body if body.startswith("import") else AGENT + body
    assert rewritten(tmp_path, "iterate_generator", source, "# here", message=STALE) == source
