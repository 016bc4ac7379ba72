"""A module that keeps its state forgets it where a pass over other sequences begins, in training and in evaluation."""

from __future__ import annotations

import difflib
import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, failed, line_of, write

FULL = "Expected hidden size (1, 3, 8), got [1, 5, 8]"
NET = """import torch
from torch import nn


class Kept:
    def forget(self):
        self.state = None


class Net(nn.Module{base}):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 8, batch_first=True)
        self.read = nn.Linear(8, 2)
        self.state = None
{reset}
    def forward(self, x):
        out, state = self.rnn(x, self.state)
        self.state = state.detach()
        return self.read(out)
"""
RESET = '''
    def reset(self):
        """Other sequences follow."""
        self.state = None
'''
PAIR = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(2, 8, batch_first=True)
        self.read = nn.Linear(8, 2)
        self.init_hidden()

    def init_hidden(self, batch=None):
        self.h, self.c = None, None
        self.seen = 0

    def forward(self, x):
        given = None if self.h is None else (self.h, self.c)
        out, (h, c) = self.rnn(x, given)
        self.h, self.c = h.detach(), c.detach()
        return self.read(out)
"""
START = """import torch
from torch.nn.functional import mse_loss
from net import Net
"""
LOOPS = """
model = Net()
opt = torch.optim.SGD(model.parameters(), 0.1)
model.reset()
for epoch in range(2):
    for x in train:
        loss = mse_loss(model(x), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        errors = [mse_loss(model(x), x).item() for x in test]
"""
FUNCTIONS = """
def step(net, x):
    return mse_loss(net(x), x)


def fit(net, opt, data):
    net.train()
    for at in range(0, data.size(1), 4):
        x = data[:, at : at + 4]
        opt.zero_grad()
        step(net, x).backward()
        opt.step()


@torch.no_grad()
def measure(net, data):
    total = 0.0
    for x in data:
        total += step(net, x).item()
    return total


model = Net()
opt = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    fit(model, opt, series)
    measure(model, test)
"""
TRAINER = """
class Trainer:
    def __init__(self):
        self.model = Net()
        self.opt = torch.optim.SGD(self.model.parameters(), 0.1)

    def fit(self, data):
        for x in data:
            loss = mse_loss(self.model(x), x)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    def measure(self, data):
        return sum(mse_loss(self.model(x), x).item() for x in data)


trainer = Trainer()
for epoch in range(2):
    trainer.fit(train)
    trainer.measure(test)
"""
ROUNDS = """
model = Net()
opt = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    for x in train:
        model.reset()
        loss = mse_loss(model(x), x)
        loss.backward()
        opt.step()
    for x in test:
        error = mse_loss(model(x), x)
"""
PART = """
class Whole(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.core = Net()

    def forward(self, x):
        return self.core(x).tanh()


model = Whole()
opt = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(2):
    model.core.reset()
    for x in train:
        loss = mse_loss(model(x), x)
        loss.backward()
        opt.step()
    for x in test:
        error = mse_loss(model(x), x)
"""
ONCE = LOOPS.replace("for epoch in range(2):\n    for x in train:", "if True:\n    for x in train:")
OWN, BASE = NET.format(base="", reset=RESET), NET.format(base=", Kept", reset="")
WRONG = {
    "a loop and a comprehension": (OWN, LOOPS, "errors = ", ["model.reset()", "model.reset()"]),
    "reset before the training alone": (OWN, ONCE, "errors = ", ["model.reset()"]),
    "functions and a helper": (OWN, FUNCTIONS, "total += ", ["net.reset()", "net.reset()"]),
    "methods of a trainer": (OWN, TRAINER, "return sum", ["self.model.reset()", "self.model.reset()"]),
    "each round": (OWN, ROUNDS, "error = ", ["model.reset()"]),
    "a part of the model": (OWN, PART, "error = ", ["model.core.reset()"]),
    "a method of a base class": (BASE, FUNCTIONS, "total += ", ["net.forget()", "net.forget()"]),
    "two states": (PAIR, FUNCTIONS, "total += ", ["net.init_hidden()", "net.init_hidden()"]),
}
LAST = LOOPS.replace("    for x in train:", "    model.reset()\n    for x in train:")
RIGHT = {
    "no such method": (NET.format(base="", reset=""), FUNCTIONS, "total += ", FULL),
    "another width": (OWN, FUNCTIONS, "total += ", "Expected hidden size (1, 5, 8), got [1, 5, 16]"),
    "the last batch of a pass that is reset": (OWN, LAST, "loss = ", FULL),
    "a state for a batch that is asked for": (
        NET.format(base="", reset="\n    def reset(self, batch):\n        self.state = None\n"), FUNCTIONS, "total += ", FULL,
    ),
    "a state of a fixed batch": (
        NET.format(base="", reset="\n    def reset(self):\n        self.state = torch.zeros(1, 5, 8)\n"), FUNCTIONS, "total += ", FULL,
    ),
    "weights made anew": (
        NET.format(base="", reset=f"{RESET}        self.read.reset_parameters()\n"), FUNCTIONS, "total += ", FULL,
    ),
    "other layers made anew": (
        NET.format(base="", reset=f"{RESET}        self.read = nn.Linear(8, 2)\n"), FUNCTIONS, "total += ", FULL,
    ),
    "a comprehension where each round is reset": (
        OWN, ROUNDS.replace("for x in test:\n        error = mse_loss(model(x), x)", "errors = [model(x) for x in test]"), "errors = ", FULL,
    ),
    "a call in no loop": (OWN, LOOPS.replace("[mse_loss(model(x), x).item() for x in test]", "model(test)"), "errors = ", FULL),
}  # fmt: skip


def mended(folder: pathlib.Path, net: str, loops: str, at: str, message: str) -> str:
    """The script after the best edit."""
    script = START + loops
    program = write(folder, {"train.py": script, "net.py": net})
    lines = {"train.py": line_of(script, at), "net.py": line_of(net, "self.rnn(x, ")}
    proposal = best("forget_state_each_pass", program, incident=failed(lines, message))
    return script if proposal is None else splice(script, proposal.edits)


@pytest.mark.parametrize(("net", "loops", "at", "message"), RIGHT.values(), ids=RIGHT)
def test_left_alone(net: str, loops: str, at: str, message: str, tmp_path: pathlib.Path) -> None:
    """No method forgets the state and nothing else, or no loop lacks its call."""
    assert mended(tmp_path, net, loops, at, message) == START + loops


@pytest.mark.parametrize(("net", "loops", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_each_pass_begins_without_a_state(
    net: str, loops: str, at: str, wanted: list[str], tmp_path: pathlib.Path
) -> None:
    """The method is called before each loop that lacks it; a second time nothing is left to do."""
    after = mended(tmp_path, net, loops, at, FULL)
    lines = difflib.ndiff((START + loops).splitlines(), after.splitlines())
    assert [one[2:].strip() for one in lines if not one.startswith("  ")] == wanted
    assert mended(tmp_path, net, after.removeprefix(START), at, FULL) == after


@pytest.mark.torch
@pytest.mark.parametrize("name", WRONG)
def test_another_batch_size_goes_through(name: str, tmp_path: pathlib.Path) -> None:
    """As it was, the evaluation refuses the state of the training; mended both epochs run."""
    torch = pytest.importorskip("torch")
    net, loops, at, _ = WRONG[name]
    after = mended(tmp_path, net, loops, at, FULL)
    given = {"train": [torch.ones(5, 4, 2)] * 2, "test": [torch.ones(3, 4, 2)] * 2, "series": torch.ones(5, 8, 2)}
    for source, fails in ((START + loops, True), (after, False)):
        space = dict(given)
        exec(net, space)
        text = source.replace("from net import Net\n", "")
        if fails:
            with pytest.raises(RuntimeError, match="hidden"):
                exec(text, space)
        else:
            exec(text, space)
