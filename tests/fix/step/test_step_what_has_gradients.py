"""A scaler leaves out the step of an optimizer whose parts are frozen for a while, or have no part in the loss."""

from __future__ import annotations

import pathlib

import pytest

from explainer.model.incident import IDLE_OPTIMIZER
from explainer.source.loop.phase import ONCE, PHASE, TURN, find_switches
from tests.fix.rewriting import changed_lines, rewritten, write

SAID = "No inf checks were recorded for this optimizer."
HEAD = """import torch
from torch import nn
net = nn.ModuleDict({"body": nn.Linear(4, 4), "head": nn.Linear(4, 1)})
opts = {name: torch.optim.SGD(part.parameters(), lr=0.1) for name, part in net.items()}
scaler = torch.amp.GradScaler("cpu")
"""
STEP = """        loss = net["head"](net["body"](x)).mean()
        scaler.scale(loss).backward()
        for opt in opts.values():
            scaler.step(opt)
        scaler.update()
"""
LATER = """for epoch in range(3):
    if epoch == 1:
        net["body"].requires_grad_(False)
    for x in torch.randn(4, 8, 4):
"""
FIRST = """net["body"].requires_grad_(False)
for epoch in range(3):
    if epoch == 1:
        net["body"].requires_grad_(True)
    for x in torch.randn(4, 8, 4):
"""
CHOSEN = """for epoch in range(3):
    for p in net["body"].parameters():
        p.requires_grad = epoch >= 1
    for x in torch.randn(4, 8, 4):
"""
HELPER = """def trainable(module, on):
    for p in module.parameters():
        p.requires_grad_(on)
for epoch in range(3):
    trainable(net["body"], epoch > 0)
    for x in torch.randn(4, 8, 4):
"""
COUNTED = """for epoch in range(3):
    for i, x in enumerate(torch.randn(4, 8, 4)):
        if i == 2:
            net["body"].requires_grad_(False)
"""
METHODS = """import torch
from torch import nn
class Run:
    def __init__(self, net, opts):
        self.net, self.opts, self.scaler = net, opts, torch.amp.GradScaler("cpu")
    def freeze(self):
        self.net["body"].requires_grad_(False)
    def step(self, x):
        self.scaler.scale(self.net["head"](self.net["body"](x)).mean()).backward()
        for opt in self.opts:
            self.scaler.step(opt)
        self.scaler.update()
    def fit(self):
        for epoch in range(3):
            if epoch == 1:
                self.freeze()
            for x in torch.randn(4, 8, 4):
                self.step(x)
"""
STAGES = """def run(epochs):
    for x in torch.randn(4, 8, 4):
        loss = net["head"](net["body"](x)).mean()
        scaler.scale(loss).backward()
        scaler.step(opts["body"])
        scaler.step(opts["head"])
        scaler.update()
run(2)
net["body"].requires_grad_(False)
run(2)
"""
GUARD = 'if any(p.grad is not None for group in {}.param_groups for p in group["params"]):'
TRAINED, NEVER = "SGD: frozen, 4 steps before", "SGD: frozen, 0 steps before"

# An adversary that is frozen in each step, for the turn of the other, and never thawed: its step was meant.
TURNS = """for x in torch.randn(4, 8, 4):
    net["head"].requires_grad_(False)
    scaler.scale(net["head"](net["body"](x)).mean()).backward()
    for opt in opts.values():
        scaler.step(opt)
    scaler.update()
"""
EVERY_OTHER = """for i, x in enumerate(torch.randn(4, 8, 4)):
    if i % 2:
        for p in net["head"].parameters():
            p.requires_grad = False
        scaler.scale(net["head"](net["body"](x)).mean()).backward()
        scaler.step(opts["body"])
    scaler.scale(net["head"](net["body"](x)).square().mean()).backward()
    scaler.step(opts["head"])
    scaler.update()
"""
ALWAYS = 'net["body"].requires_grad_(False)\nfor epoch in range(3):\n    for x in torch.randn(4, 8, 4):\n' + STEP
BY_NAME = """for name, p in net.named_parameters():
    p.requires_grad = "head" in name
for epoch in range(3):
    for x in torch.randn(4, 8, 4):
"""
STEPS = "    for x in torch.randn(4, 8, 4):\n"
KEPT = {
    "of which nothing live is known to be frozen": (HEAD + "for epoch in range(3):\n" + STEPS + STEP, None),
    "one that belongs to another model": (HEAD + LATER + STEP, "SGD: elsewhere, 4 steps before"),
    "one that was never used": (HEAD + LATER + STEP, "SGD: unused, 0 steps before"),
    "an adversary that is frozen in each step": (HEAD + TURNS, TRAINED),
    "an adversary that is frozen for a turn": (HEAD + EVERY_OTHER, TRAINED),
    "one that never trains": (HEAD + ALWAYS, NEVER),
    "one that is left out by name": (HEAD + BY_NAME + STEP, NEVER),
    "frozen behind what the program says": (HEAD + "for epoch in range(3):\n" + STEPS + STEP, TRAINED),
}  # fmt: skip
GUARDED = {
    "frozen from an epoch on": (HEAD + LATER + STEP, TRAINED, "opt"),
    "frozen up to an epoch": (HEAD + FIRST + STEP, NEVER, "opt"),
    "frozen as a condition says": (HEAD + CHOSEN + STEP, NEVER, "opt"),
    "frozen by a helper that is told": (HEAD + HELPER + STEP, NEVER, "opt"),
    "frozen from a step on": (HEAD + COUNTED + STEP, TRAINED, "opt"),
    "frozen by a method": (METHODS, TRAINED, "opt"),
    "frozen between two stages": (HEAD + STAGES, TRAINED, 'opts["body"]'),
    "unused in this step": (HEAD + "for epoch in range(3):\n" + STEPS + STEP, "SGD: unused, 4 steps before", "opt"),
    "frozen, as a log alone tells": (HEAD + LATER + STEP, None, "opt"),
}


def guarded(folder: pathlib.Path, source: str, seen: str | None) -> str:
    """The program after the edit for its first step of a scaler."""
    facts = {IDLE_OPTIMIZER: seen} if seen is not None else {}
    return rewritten(folder, "step_what_has_gradients", source, "scaler.step(", message=SAID, facts=facts)


@pytest.mark.parametrize(("source", "seen"), KEPT.values(), ids=KEPT)
def test_what_was_meant_to_step_stays(tmp_path: pathlib.Path, source: str, seen: str | None) -> None:
    """An optimizer that is to train now is not left out."""
    assert guarded(tmp_path, source, seen) == source


@pytest.mark.parametrize(("source", "seen", "optimizer"), GUARDED.values(), ids=GUARDED)
def test_steps_where_there_are_gradients(tmp_path: pathlib.Path, source: str, seen: str | None, optimizer: str) -> None:
    """The step gets the condition that the optimizer itself has for each parameter."""
    after = guarded(tmp_path, source, seen)
    lines = changed_lines(source, after)
    assert lines[0] == GUARD.format(optimizer)
    assert lines[1:] in ([], [f"scaler.step({optimizer})"], [f"self.scaler.step({optimizer})"])


def test_another_failure_is_not_mended(tmp_path: pathlib.Path) -> None:
    """Only a scaler that found no gradients asks for it."""
    facts, said = {IDLE_OPTIMIZER: TRAINED}, "step() has already been called since the last update()."
    source = HEAD + LATER + STEP
    assert rewritten(tmp_path, "step_what_has_gradients", source, "scaler.step(", message=said, facts=facts) == source


SWITCHES = {
    "from an epoch on": (HEAD + LATER + STEP, [(False, PHASE)]),
    "up to an epoch": (HEAD + FIRST + STEP, [(False, ONCE), (True, PHASE)]),
    "by a condition": (HEAD + CHOSEN + STEP, [(None, PHASE)]),
    "by a helper": (HEAD + HELPER + STEP, [(None, PHASE)]),
    "in each step": (HEAD + TURNS, [(False, TURN)]),
    "for a turn": (HEAD + EVERY_OTHER, [(False, TURN)]),
    "between two stages": (HEAD + STAGES, [(False, PHASE)]),
    "by name": (HEAD + BY_NAME + STEP, []),
}


@pytest.mark.parametrize(("source", "wanted"), SWITCHES.values(), ids=SWITCHES)
def test_when_a_program_switches(tmp_path: pathlib.Path, source: str, wanted: list) -> None:
    """Once, for a phase of the training, or for the turn of one network in each step."""
    found = find_switches(write(tmp_path, {"train.py": source}))
    assert [(one.is_on, one.when) for one in found] == wanted
