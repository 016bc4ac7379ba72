"""A module that a round freezes and thaws hands on only the graph of its input while it is frozen."""

from __future__ import annotations

import pathlib

import pytest

from explainer.source.loop.backward import find_backwards
from explainer.source.value.binding import Value
from explainer.source.value.provenance import provenance_of
from tests.fix.rewriting import write

HEAD = """import torch
from torch import nn
maker, critic = nn.Linear(2, 5), nn.Linear(1, 1)


def trainable(net, on=True):
    for p in net.parameters():
        p.requires_grad_(on)


def switch(nets, on=False):
    if not isinstance(nets, list):
        nets = [nets]
    for net in nets:
        if net is not None:
            for p in net.parameters():
                p.requires_grad = on


def pick(x):
    return maker(x).argmax(1, keepdim=True).float()


for _ in range(3):
"""
LIVE = {
    "never frozen": "    loss = critic(pick(torch.randn(4, 2))).mean()\n",
    "thawed again": "    trainable(critic, False)\n    trainable(critic)\n    loss = critic(pick(torch.randn(4, 2))).mean()\n",
    "frozen under a condition": "    if _ > 1:\n        trainable(critic, False)\n    loss = critic(pick(torch.randn(4, 2))).mean()\n",
    "frozen behind the forward": "    loss = critic(pick(torch.randn(4, 2))).mean()\n    trainable(critic, False)\n",
    "another module frozen": "    trainable(maker, False)\n    loss = critic(pick(torch.randn(4, 2))).mean()\n",
    "a state that is not known": "    trainable(critic, _ > 0)\n    loss = critic(pick(torch.randn(4, 2))).mean()\n",
    "its input has a graph": "    trainable(critic, False)\n    loss = critic(maker(torch.randn(4, 2)).mean(1, keepdim=True)).mean()\n",
}  # fmt: skip
CUT = {
    "by a function": "    trainable(critic, True)\n    trainable(critic, on=False)\n    loss = critic(pick(torch.randn(4, 2))).mean()\n",
    "by a function of several, by its default": "    switch([critic])\n    loss = critic(pick(torch.randn(4, 2))).mean()\n    switch(critic, True)\n",
    "by a call": "    critic.requires_grad_(False)\n    loss = critic(pick(torch.randn(4, 2))).mean()\n    critic.requires_grad_(True)\n",
    "by a loop": "    for p in critic.parameters():\n        p.requires_grad = False\n    loss = critic(pick(torch.randn(4, 2))).mean()\n    trainable(critic)\n",
}  # fmt: skip


def _trace(body: str, folder: pathlib.Path) -> tuple[bool, list[str]]:
    program = write(folder, {"train.py": HEAD + body + "    loss.backward()\n"})
    (one,) = find_backwards(program)
    found = provenance_of(program).trace(Value(one.loss, one.file))
    return found.live, [cut.kind for chain in found.chains for cut in chain]


@pytest.mark.parametrize("body", LIVE.values(), ids=LIVE)
def test_what_may_train_is_live(body: str, tmp_path: pathlib.Path) -> None:
    """A module that is not surely frozen where it runs has a graph of its own."""
    assert _trace(body, tmp_path)[0]


@pytest.mark.parametrize("body", CUT.values(), ids=CUT)
def test_the_cut_before_a_frozen_module_shows(body: str, tmp_path: pathlib.Path) -> None:
    """Behind a frozen module only the cut way to the other one is left."""
    assert _trace(body, tmp_path) == (False, ["integer"])
