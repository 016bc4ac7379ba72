"""What a registered buffer keeps is detached; attributes that are no buffers, and values without a graph, stay."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.mending import mended, run
from tests.fix.rewriting import failed, rewritten, write

WRONG = {
    "a name": ("self.memory = fresh", "self.memory = fresh.detach()"),
    "a sum": (
        "self.memory = 0.9 * self.memory + 0.1 * fresh",
        "self.memory = (0.9 * self.memory + 0.1 * fresh).detach()",
    ),
}
RIGHT = {
    "detached": "self.memory = fresh.detach()",
    "made anew": "self.memory = torch.zeros(3)",
    "no buffer": "self.other = fresh",
    "without grad": "with torch.no_grad():\n            self.memory = fresh",
}


def program(line: str) -> str:
    return f"""import torch

class Bank(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("memory", torch.zeros(3))

    def update(self, fresh):
        {line}
"""


@pytest.mark.parametrize(("line", "wanted"), WRONG.values(), ids=WRONG.keys())
def test_the_kept_value_is_detached(tmp_path: pathlib.Path, line: str, wanted: str) -> None:
    """Once, and the second time nothing is left."""
    after = rewritten(tmp_path, "detach_kept_buffer", program(line))
    assert after == program(wanted)
    assert rewritten(tmp_path, "detach_kept_buffer", after) == after


@pytest.mark.parametrize("line", RIGHT.values(), ids=RIGHT.keys())
def test_others_stay(tmp_path: pathlib.Path, line: str) -> None:
    """Nothing there has a graph, or it is no buffer."""
    assert rewritten(tmp_path, "detach_kept_buffer", program(line)) == program(line)


ENSEMBLE = """import torch

class Ensemble:
    def __init__(self, n):
        self.z = torch.zeros(n, 2)
        self.seen = []

    def targets(self, i):
        return self.z[i] / 2

    def update(self, i, p):
        self.z[i] = 0.6 * self.z[i] + 0.4 * p
        self.seen[i] = p

net = torch.nn.Linear(3, 2)
ensemble, counts = Ensemble(4), {}
opt = torch.optim.SGD(net.parameters(), 0.1)
for i, x in enumerate(torch.randn(4, 3)):
    p = net(x).softmax(-1)
    BEFORE
    loss = (p - ensemble.targets(i)).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    AFTER
    counts.update({i: 1})
"""
UPDATE, NOTHING = "ensemble.update(i, p)", "opt.step()"


def test_what_an_object_keeps_for_the_next_step(tmp_path: pathlib.Path) -> None:
    """Written behind the backward it is a constant of the steps to come."""
    source = ENSEMBLE.replace("BEFORE", "i = int(i)").replace("AFTER", UPDATE)
    after = rewritten(tmp_path, "detach_kept_buffer", source)
    assert after == source.replace("0.6 * self.z[i] + 0.4 * p", "(0.6 * self.z[i] + 0.4 * p).detach()")
    assert rewritten(tmp_path, "detach_kept_buffer", after) == after


def test_what_this_step_reads(tmp_path: pathlib.Path) -> None:
    """Written before the backward it may be part of this step's loss."""
    source = ENSEMBLE.replace("BEFORE", UPDATE).replace("AFTER", NOTHING)
    assert rewritten(tmp_path, "detach_kept_buffer", source) == source


MEMORY = """import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 3)
        self.register_buffer("memory", torch.zeros(9, 3))

    def forward(self, rows, x):
        state = self.cell(x, self.memory[rows])
        self.memory = self.memory.index_copy(0, rows, state)
        return RESULT
"""


def test_a_buffer_that_this_step_reads_as_well(tmp_path: pathlib.Path) -> None:
    """What is returned goes on into the loss: the old memory is detached, not the new one."""
    source = MEMORY.replace("RESULT", "self.memory")
    after = rewritten(tmp_path, "detach_kept_buffer", source)
    taken_up = "        state = self.cell(x, self.memory[rows])\n"
    assert after == source.replace(taken_up, "        self.memory = self.memory.detach()\n" + taken_up)
    other = MEMORY.replace("RESULT", "state")
    after = rewritten(tmp_path, "detach_kept_buffer", other)
    assert after == other.replace("index_copy(0, rows, state)", "index_copy(0, rows, state).detach()")


WRITTEN = {
    "a part of it": ("self.memory[rows] = fresh", "self.memory[rows] = fresh.detach()"),
    "added to": (
        "self.memory[rows] -= 0.5 * fresh",
        "with torch.no_grad():\n            self.memory[rows] -= 0.5 * fresh",
    ),
    "by methods": (
        "self.memory.mul_(0.9).add_(fresh)",
        "with torch.no_grad():\n            self.memory.mul_(0.9).add_(fresh)",
    ),
}


@pytest.mark.parametrize(("line", "wanted"), WRITTEN.values(), ids=WRITTEN.keys())
def test_what_is_written_in_place(tmp_path: pathlib.Path, line: str, wanted: str) -> None:
    """A statement by which nothing is recorded, or a value without its graph."""
    after = rewritten(tmp_path, "detach_kept_buffer", program(line))
    assert after == program(wanted)
    assert rewritten(tmp_path, "detach_kept_buffer", after) == after


CACHE = """import torch
from torch import nn


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Linear(4, 4)
        self.register_buffer("k", torch.zeros(6, 4))
        self.register_buffer("v", torch.zeros(6, 4))

    def forward(self, x):
        for at in range(len(x)):
            self.k[at] = self.key(x[at])
            self.v[at] = x[at]
        return self.k.clone(), self.v.clone()


torch.manual_seed(0)
cache, gradients = Cache(), []
for step in range(2):
    keys, values = cache(torch.ones(6, 4))
    cache.zero_grad()
    (keys * values).sum().backward()
    gradients.append(cache.key.weight.grad.clone())
"""


def test_a_cache_that_this_step_reads(tmp_path: pathlib.Path) -> None:
    """Both buffers of a method leave their old graph behind before its loop; what this step writes keeps its own."""
    torch = pytest.importorskip("torch")
    after = mended("detach_kept_buffer", CACHE, tmp_path)
    assert "        self.k = self.k.detach().clone()\n        self.v = self.v.detach().clone()\n        for at" in after
    first, second = run(after, tmp_path / "after.py")["gradients"]
    assert torch.equal(first, second)
    assert first.abs().sum() > 0


USAGE = """import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.register_buffer("usage", torch.zeros(3))

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        self.usage.mul_(0.9).add_(weights.mean(0), alpha=0.1)
        return weights

    def balance(self):
        return (self.usage**2).sum()


torch.manual_seed(0)
gate, gradients = Gate(), []
for step in range(2):
    weights = gate(torch.ones(6, 4))
    gate.zero_grad()
    (weights[:, 0].mean() + gate.balance()).backward()
    gradients.append(gate.gate.weight.grad.clone())
"""


def test_what_another_method_takes_a_loss_of(tmp_path: pathlib.Path) -> None:
    """Detached as it is kept, the balance would train nothing: the second edit takes up the old values without their graph."""
    torch = pytest.importorskip("torch")
    program = write(tmp_path, {"train.py": USAGE})
    found = list(find_codemod("detach_kept_buffer")(Context(program=program, incident=failed())))
    texts = [splice(USAGE, one.edits) for one in sorted(found, key=lambda one: -one.belief)]
    line = "        self.usage = self.usage.detach().clone()\n"
    assert texts[1] == USAGE.replace("        self.usage.mul_", f"{line}        self.usage.mul_")
    kept, wanted = (run(text, tmp_path / f"{at}.py")["gradients"] for at, text in enumerate(texts))
    first = run(USAGE.replace("range(2)", "range(1)"), tmp_path / "first.py")["gradients"][0]
    assert torch.equal(wanted[0], first)
    assert not torch.equal(kept[0], first)
