"""States in dictionaries, pairs, records and attributes are cut where one backward is over, and nowhere else."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

HEAD = """import torch
from torch import nn
import torch.nn.functional as F
from dataclasses import dataclass, replace
from typing import NamedTuple

torch.manual_seed(0)
B, T, D, H = 2, 3, 3, 4
chunks = [(torch.randn(B, T, D), torch.randn(B, T, 1)) for _ in range(3)]


def zeros():
    return torch.zeros(B, H)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(D, H), nn.Linear(H, 1)


net = Net()
opt = torch.optim.Adam(net.parameters())
"""
STEP = """    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ROUND = """for x, y in chunks:
    loss = 0.0
    for t in range(T):
        state["h"], state["c"] = net.cell(x[:, t], (state["h"], state["c"]))
        loss = loss + F.mse_loss(net.head(state["h"]), y[:, t])
"""
DICT = 'state = {"h": zeros(), "c": zeros()}\n'
RECORD = """@dataclass
class State:
    h: torch.Tensor
    c: torch.Tensor
    step: int = 0


"""
CARRIED = {
    "entries over time": (DICT + ROUND + STEP, ["+    state = {key: part.detach() for key, part in state.items()}"]),
    "with the graph retained": (
        DICT + ROUND + STEP.replace("backward()", "backward(retain_graph=True)"),
        ["+    state = {key: part.detach() for key, part in state.items()}"],
    ),
    "entries beside a count": (
        'state = {"h": zeros(), "c": zeros(), "t": 0}\n' + ROUND + '        state["t"] += 1\n' + STEP,
        ['+    state = {**state, "h": state["h"].detach(), "c": state["c"].detach()}'],
    ),
    "entries that are empty at first": (
        'state = {"h": zeros(), "c": None}\n' + ROUND.replace('(state["h"], state["c"]))', '(state["h"], state["c"] if t else zeros()))') + STEP,
        ['+    state = {key: None if part is None else part.detach() for key, part in state.items()}'],
    ),
    "every few rounds": (
        DICT
        + """loss = 0.0
for t in range(9):
    x, y = chunks[t // T]
    state["h"], state["c"] = net.cell(x[:, t % T], (state["h"], state["c"]))
    loss = loss + F.mse_loss(net.head(state["h"]), y[:, t % T])
    if (t + 1) % T == 0:
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss = 0.0
""",
        ["+        state = {key: part.detach() for key, part in state.items()}"],
    ),
    "stepped by a function": (
        "def apply(loss):\n" + STEP + "\n\n" + DICT + ROUND + "    apply(loss)\n",
        ["+    state = {key: part.detach() for key, part in state.items()}"],
    ),
    "filled by a function": (
        """def advance(x, state):
    state["h"], state["c"] = net.cell(x, (state["h"], state["c"]))
    return net.head(state["h"])


"""
        + DICT
        + """for x, y in chunks:
    loss = sum(F.mse_loss(advance(x[:, t], state), y[:, t]) for t in range(T))
"""
        + STEP,
        ["+    state = {key: part.detach() for key, part in state.items()}"],
    ),
    "a function that steps": (
        "def train(x, y, state):\n    loss = 0.0\n"
        + "".join(ROUND.splitlines(keepends=True)[2:])
        + STEP
        + "\n\n"
        + DICT
        + "for x, y in chunks:\n    train(x, y, state)\n",
        ["+    state = {key: part.detach() for key, part in state.items()}"],
    ),
    "lists in a dictionary": (
        """cells = [net.cell, nn.LSTMCell(H, H)]
state = {"h": [zeros(), zeros()], "c": [zeros(), zeros()]}
for x, y in chunks:
    loss = 0.0
    for t in range(T):
        z = x[:, t]
        for k, cell in enumerate(cells):
            state["h"][k], state["c"][k] = cell(z, (state["h"][k], state["c"][k]))
            z = state["h"][k]
        loss = loss + F.mse_loss(net.head(z), y[:, t])
"""
        + STEP,
        ["+    state = {key: [part.detach() for part in parts] for key, parts in state.items()}"],
    ),
    "pairs in a list": (
        """def fit():
    cells = nn.ModuleList([nn.LSTMCell(D, H), nn.LSTMCell(H, H)])
    opt = torch.optim.Adam(cells.parameters())
    states = [(zeros(), zeros()) for _ in cells]
    for x, y in chunks:
        z = x[:, 0]
        for k, cell in enumerate(cells):
            states[k] = cell(z, states[k])
            z = states[k][0]
        loss = z.pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


fit()
""",
        ["+        states = [tuple(part.detach() for part in parts) for parts in states]"],
    ),
    "attributes": (
        """class Memory:
    def __init__(self):
        self.h, self.c = zeros(), zeros()


memory = Memory()
for x, y in chunks:
    memory.h, memory.c = net.cell(x[:, 0], (memory.h, memory.c))
    loss = F.mse_loss(net.head(memory.h), y[:, 0])
"""
        + STEP,
        ["+    memory.h = memory.h.detach()", "+    memory.c = memory.c.detach()"],
    ),
    "a dataclass": (
        RECORD
        + """state = State(zeros(), zeros())
for x, y in chunks:
    loss = 0.0
    for t in range(T):
        h, c = net.cell(x[:, t], (state.h, state.c))
        state = State(h, c, state.step + 1)
        loss = loss + F.mse_loss(net.head(h), y[:, t])
"""
        + STEP,
        ["+    state = type(state)(h=state.h.detach(), c=state.c.detach(), step=state.step)"],
    ),
    "a named tuple": (
        RECORD.replace("@dataclass\nclass State:", "class State(NamedTuple):")
        + """state = State(zeros(), zeros())
for x, y in chunks:
    h, c = net.cell(x[:, 0], (state.h, state.c))
    state = state._replace(h=h, c=c, step=state.step + 1)
    loss = F.mse_loss(net.head(h), y[:, 0])
"""
        + STEP,
        ["+    state = state._replace(h=state.h.detach(), c=state.c.detach())"],
    ),
}  # fmt: skip
CELL = """class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(D, H), nn.Linear(H, 1)
        self.reset()

    def reset(self):
        self.state = (zeros(), zeros())

    def forget(self):
        self.state = tuple(part.detach() for part in self.state)

    def forward(self, x):
        self.state = self.cell(x, self.state)
        return self.head(self.state[0])


"""
CELLS = """net = Cell()
opt = torch.optim.Adam(net.parameters())
for epoch in range(2):
    net.reset()
    for x, y in chunks:
        loss = sum(F.mse_loss(net(x[:, t]), y[:, t]) for t in range(T))
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
MODULES = {
    "a pair that is reset for each epoch": (
        CELL + CELLS,
        ["+        net.state = tuple(part.detach() for part in net.state)"],
    ),
    "entries": (
        CELL.replace("(zeros(), zeros())", '{"h": zeros(), "c": zeros()}')
        .replace("self.state = self.cell(x, self.state)", 'self.state["h"], self.state["c"] = self.cell(x, (self.state["h"], self.state["c"]))')
        .replace("self.state[0]", 'self.state["h"]').replace("tuple(part.detach() for part in self.state)", "None") + CELLS,
        ["+        net.state = {key: part.detach() for key, part in net.state.items()}"],
    ),
    "two attributes": (
        """class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(D, H), nn.Linear(H, 1)
        self.h, self.c = zeros(), zeros()

    def forward(self, x):
        h, c = self.cell(x, (self.h, self.c))
        self.h, self.c = h, c
        return self.head(h)


"""
        + CELLS.replace("    net.reset()\n", ""),
        ["+        net.c = net.c.detach()", "+        net.h = net.h.detach()"],
    ),
    "a part of a model, in a trainer": (
        CELL
        + """class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.core = Cell()

    def forward(self, x):
        return 2 * self.core(x)


class Trainer:
    def __init__(self, model):
        self.model, self.opt = model, torch.optim.Adam(model.parameters())

    def loss(self, x, y):
        return torch.stack([F.mse_loss(self.model(x[:, t]), y[:, t]) for t in range(T)]).mean()

    def step(self, x, y):
        loss = self.loss(x, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


trainer = Trainer(Model())
for x, y in chunks:
    trainer.step(x, y)
""",
        ["+        self.model.core.state = tuple(part.detach() for part in self.model.core.state)"],
    ),
}  # fmt: skip
STORES = {
    "an entry of a store, looked up": (
        'bank = {0: {"h": zeros(), "c": zeros()}, 1: {"h": zeros(), "c": zeros()}}\n'
        + ROUND.replace("chunks:\n", "chunks + chunks:\n    state = bank[len(seen) % 2]\n    seen.append(0)\n").replace("for x", "seen = []\nfor x", 1)
        + STEP,
        ['+    state["h"] = state["h"].detach()', '+    state["c"] = state["c"].detach()'],
    ),
    "an object of a store, in a method": (
        """class Slot:
    def __init__(self):
        self.pair, self.seen = (zeros(), zeros()), 0


class Learner:
    def __init__(self):
        self.slots = {name: Slot() for name in "ab"}

    def learn(self, name, x, y):
        slot = self.slots[name]
        loss = 0.0
        for t in range(T):
            slot.pair = net.cell(x[:, t], slot.pair)
            slot.seen += 1
            loss = loss + F.mse_loss(net.head(slot.pair[0]), y[:, t])
        opt.zero_grad()
        loss.backward()
        opt.step()


learner = Learner()
for (x, y), name in zip(chunks + chunks, "ababab"):
    learner.learn(name, x, y)
""",
        ["+        slot.pair = tuple(part.detach() for part in slot.pair)"],
    ),
    "lists of a store that a loop hands out": (
        """bank = {"a": [zeros(), zeros()], "b": [zeros(), zeros()]}
cells = [nn.GRUCell(D, H), nn.GRUCell(H, H)]
for x, y in chunks:
    for states in bank.values():
        z = x[:, 0]
        for k, cell in enumerate(cells):
            states[k] = cell(z, states[k])
            z = states[k]
        loss = F.mse_loss(net.head(z), y[:, 0])
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
        ["+        states[:] = [part.detach() for part in states]"],
    ),
}  # fmt: skip
RIGHT = {
    "a state for each chunk": "for x, y in chunks:\n    " + DICT + "".join(ROUND.splitlines(keepends=True)[1:]) + STEP,
    "entries that are filled first": """out = {}
for x, y in chunks:
    out["h"] = net.cell(x[:, 0])[0]
    loss = F.mse_loss(net.head(out["h"]), y[:, 0])
""" + STEP,
    "attributes that are filled first": """class Cache:
    pass


cache = Cache()
for x, y in chunks:
    cache.h = net.cell(x[:, 0])[0]
    loss = F.mse_loss(net.head(cache.h), y[:, 0])
""" + STEP,
    "detached entry by entry": DICT + ROUND + STEP + "    for key in state:\n        state[key] = state[key].detach()\n",
    "detached into new entries": DICT + ROUND + STEP + "    state.update({key: part.detach() for key, part in state.items()})\n",
    "a sum of numbers": 'seen = {"loss": 0.0}\nfor x, y in chunks:\n    loss = net.head(net.cell(x[:, 0])[0]).mean()\n'
    + STEP + '    seen["loss"] = seen["loss"] + loss.item()\n',
    "a function that notes numbers": "def note(seen, loss):\n    seen['n'] = seen['n'] + loss.item()\n    return loss\n\n\nseen = {'n': 0.0}\n"
    "for x, y in chunks:\n    loss = note(seen, net.head(net.cell(x[:, 0])[0]).mean())\n" + STEP,
    "a module that is reset for each chunk": CELL + CELLS.replace("        loss =", "        net.reset()\n        loss ="),
    "a module that forgets behind the step": CELL + CELLS + "        net.forget()\n",
    "a module whose state the loop detaches": CELL + CELLS + "        net.state = tuple(part.detach() for part in net.state)\n",
    "batches that a loader hands out": """loader = torch.utils.data.DataLoader(torch.randn(6, D), batch_size=2)
for batch in [{"x": one} for one in loader]:
    batch["x"] = net.cell(batch["x"])[0]
    loss = net.head(batch["x"]).mean()
""" + STEP,
    "an object of the round": RECORD + """for x, y in chunks:
    state = State(zeros(), zeros())
    for t in range(T):
        state.h, state.c = net.cell(x[:, t], (state.h, state.c))
    loss = net.head(state.h).mean()
""" + STEP,
}  # fmt: skip
CODEMODS = ("detach_carried_state", "detach_module_state", "detach_entries")
WRONG = {
    f"{kind}: {name}": (codemod, *one)
    for kind, codemod, table in (
        ("carried", "detach_carried_state", CARRIED),
        ("kept by a module", "detach_module_state", MODULES),
        ("in a store", "detach_entries", STORES),
    )
    for name, one in table.items()
}


def _run(source: str) -> None:
    exec(compile(source, "train.py", "exec", dont_inherit=True), {"__name__": "one"})  # noqa: S102 - the program of a test


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
@pytest.mark.parametrize("codemod", CODEMODS)
def test_right_programs_stay(codemod: str, body: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where a round makes its own state, fills it before it reads it, or has cut it."""
    assert rewritten(tmp_path, codemod, HEAD + body, "loss.backward()") == HEAD + body


@pytest.mark.parametrize(("codemod", "body", "changes"), WRONG.values(), ids=WRONG)
def test_a_state_is_cut_behind_the_step(codemod: str, body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """By what reaches into each of its parts; a second time nothing is left to do."""
    at = "loss.backward("
    after = rewritten(tmp_path, codemod, HEAD + body, at)
    assert diff_lines(HEAD + body, after) == changes
    assert rewritten(tmp_path, codemod, after, at) == after


@pytest.mark.torch
@pytest.mark.parametrize(("codemod", "body"), [one[:2] for one in WRONG.values()], ids=WRONG)
def test_the_program_then_trains(codemod: str, body: str, tmp_path: pathlib.Path) -> None:
    """And failed before of the graph that the last step has used up, or of the weights that it has changed."""
    pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="a second time|modified by an inplace operation"):
        _run(HEAD + body)
    _run(rewritten(tmp_path, codemod, HEAD + body, "loss.backward("))


@pytest.mark.torch
@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_programs_train(body: str) -> None:
    """As they are."""
    pytest.importorskip("torch")
    _run(HEAD + body)
