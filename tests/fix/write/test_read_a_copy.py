"""What is read and then written in place is read as a copy."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, diff_lines, failed, rewritten, write

COLLECTED = """import torch
from torch import nn
net = nn.Conv1d(1, 1, 3)
u, frames = torch.randn(2, 1, 8), []
for t in range(3):
    u[:, :, 1:-1] += net(u)
    KEEP
torch.cat(frames).pow(2).mean().backward()
"""
RIGHT = {
    **{
        f"a state that is collected as it is: {keep}": (COLLECTED.replace("KEEP", keep), None)
        for keep in ("frames.append(u)", "frames += [u]", "frames = frames + [u[:, 0]]")
    },
    "steps in a list": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
cell = nn.GRUCell(3, 2)
states = [torch.zeros(4, 2)]
for t in range(3):
    states.append(cell(x, states[t]))
""",
        None,
    ),
    "outputs that the loop does not read": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
outs = torch.zeros(3, 4, 2)
for t in range(3):
    outs[t] = net(x)
""",
        None,
    ),
    "read as a copy": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
cell = nn.GRUCell(3, 2)
states = torch.zeros(4, 4, 2)
for t in range(3):
    states[t + 1] = cell(x, states[t].clone())
""",
        None,
    ),
    "a table without max_norm": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
table = nn.Embedding(10, 4)
out = table.weight @ table.weight.T
""",
        None,
    ),
    "a weight that forward leaves alone": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class L(nn.Linear):
    def forward(self, x):
        return super().forward(x)
""",
        None,
    ),
}
WRONG = {
    "steps in one tensor": (
        """\"\"\"Each time step reads the last state from a tensor and writes the next one into it.\"\"\"

import torch
from torch import nn

torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)
cell, head = nn.GRUCell(3, 8), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-3)
inputs, target = torch.randn(6, 4, 3), torch.randn(6, 4, 1)

states = torch.zeros(7, 4, 8)
for t in range(6):
    states[t + 1] = cell(inputs[t], states[t])
loss = nn.functional.mse_loss(head(states[1:]), target)
loss.backward()
optimizer.step()
""",
        None,
        ["-    states[t + 1] = cell(inputs[t], states[t])", "+    states[t + 1] = cell(inputs[t], states[t].clone())"],
    ),
    "an attribute, along the second dimension": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Net(nn.Module):
    def forward(self, x):
        h = x.new_zeros(2, 5, 3)
        for t in range(4):
            h[:, t + 1] = torch.tanh(self.fc(h[:, t]) + x[:, t])
        return h
""",
        None,
        [
            "-            h[:, t + 1] = torch.tanh(self.fc(h[:, t]) + x[:, t])",
            "+            h[:, t + 1] = torch.tanh(self.fc(h[:, t].clone()) + x[:, t])",
        ],
    ),
    "max_norm": (
        """\"\"\"A lookup with max_norm rescales rows of the table that a matrix product has already saved.\"\"\"

import torch
from torch import nn

torch.manual_seed(0)
table = nn.Embedding(1000, 16, max_norm=1.0)
project = nn.Linear(16, 4)
optimizer = torch.optim.SGD([*table.parameters(), *project.parameters()], lr=0.1)
words, targets = torch.tensor([3, 7, 11]), torch.randn(3, 4)

everything = project(table.weight)
queries = project(table(words))
loss = nn.functional.mse_loss(queries, targets) + 0.01 * everything.pow(2).mean()
loss.backward()
optimizer.step()
""",
        None,
        ["-everything = project(table.weight)", "+everything = project(table.weight.clone())"],
    ),
    "a weight normalised in forward": (
        """\"\"\"A layer normalises its own weight in place at each call, and is called twice before backward.\"\"\"

import torch
from torch import nn


class UnitLinear(nn.Linear):
    def forward(self, x):
        with torch.no_grad():
            self.weight.div_(self.weight.norm(dim=1, keepdim=True))
        return super().forward(x)


torch.manual_seed(0)
encoder, head = nn.Linear(6, 8), UnitLinear(8, 4)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
first, second = torch.randn(5, 6), torch.randn(5, 6)
loss = head(encoder(first)).pow(2).mean() + head(encoder(second)).abs().mean()
loss.backward()
optimizer.step()
""",
        None,
        [
            "-        return super().forward(x)",
            "+        return nn.functional.linear(x, self.weight.clone(), self.bias)",
        ],
    ),
    "a convolution that bounds its weight": (
        """\"\"\"A convolution of the program's own bounds its filters in forward, and is called twice before backward.\"\"\"

import torch
from torch import nn


class Bounded(nn.Conv1d):
    def forward(self, x):
        with torch.no_grad():
            self.weight.copy_(torch.renorm(self.weight, p=2, dim=0, maxnorm=0.5))
        return super().forward(x)


torch.manual_seed(0)
layer = Bounded(2, 3, 3, padding=1, padding_mode="circular")
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
loss = layer(torch.randn(4, 2, 8, requires_grad=True)).pow(2).mean() + layer(torch.randn(4, 2, 8, requires_grad=True)).abs().mean()
loss.backward()
optimizer.step()
""",
        None,
        [
            "-        return super().forward(x)",
            "+        return self._conv_forward(x, self.weight.clone(), self.bias)",
        ],
    ),
    "a weight and its product": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class L(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            self.weight.clamp_(-1, 1)
        return F.linear(x, self.weight)
""",
        None,
        ["-        return F.linear(x, self.weight)", "+        return F.linear(x, self.weight.clone())"],
    ),
}


HANDED = """import torch
from torch import nn
cell = nn.GRUCell(2, 4)
def advance(x, state, where):
    h = cell(x, state[where])
    state[where] = h
    return h
state = torch.zeros(6, 4)
parts = [advance(x, state, slice(0, 3)) for x in torch.randn(5, 3, 2)]
torch.cat(parts).sum().backward()
"""


def test_a_state_that_a_function_is_handed(tmp_path: pathlib.Path) -> None:
    """The loop is the caller's; a function that makes the state anew writes its own."""
    after = rewritten(tmp_path, "read_a_copy", HANDED)
    assert diff_lines(HANDED, after) == ["-    h = cell(x, state[where])", "+    h = cell(x, state[where].clone())"]
    own = HANDED.replace("    h = cell", "    state = state.clone()\n    h = cell")
    assert rewritten(tmp_path, "read_a_copy", own) == own


def test_a_state_whose_copies_are_collected(tmp_path: pathlib.Path) -> None:
    """Then it may be written as long as what the layer saved is not."""
    source = COLLECTED.replace("KEEP", "frames.append(u.clone())")
    after = rewritten(tmp_path, "read_a_copy", source)
    assert diff_lines(source, after) == ["-    u[:, :, 1:-1] += net(u)", "+    u[:, :, 1:-1] += net(u.clone())"]


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "read_a_copy", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "read_a_copy", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "read_a_copy", after, still) == after


def test_a_table_is_copied_only_where_a_graph_comes_of_it(tmp_path: pathlib.Path) -> None:
    """An initialiser that is given a copy would initialise that; an evaluation needs none."""
    source = """import torch
from torch import nn


class Links(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 4, max_norm=1.0)
        nn.init.normal_(self.table.weight, std=0.5)

    def forward(self, head, tail):
        first = self.table(head) @ self.table.weight.t()
        return first, self.table(tail)

    @torch.no_grad()
    def rank(self, head):
        return self.table(head) @ self.table.weight.t()
"""
    after = rewritten(tmp_path, "read_a_copy", source, "first =", options={"of": "weights"})
    assert diff_lines(source, after) == [
        "-        first = self.table(head) @ self.table.weight.t()",
        "+        first = self.table(head) @ self.table.weight.clone().t()",
    ]


def test_a_table_whose_limit_the_options_say(tmp_path: pathlib.Path) -> None:
    """The live table has `max_norm`, which no line of the program writes."""
    source = """from torch import nn


class Links(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.table, self.other = nn.Embedding(9, 4), nn.Embedding(9, 4)
        self.table = nn.Embedding(9, **options)

    def forward(self, head, tail):
        first = self.table(head) @ self.table.weight.t() + self.other.weight.sum()
        return first, self.table(tail)
"""
    program = write(tmp_path, {"train.py": source})
    for facts, wanted in (({}, None), ({"live_renormalised": "Links.table"}, "self.table.weight.clone().t()")):
        proposal = best(
            "read_a_copy", program, incident=failed({"train.py": 11}, facts=facts), options={"of": "weights"}
        )
        after = splice(source, proposal.edits) if proposal is not None else None
        assert wanted in after if after is not None and wanted else proposal is None


def test_a_state_that_others_have_saved_is_copied_whole_as_well(tmp_path: pathlib.Path) -> None:
    """Second choice: what the last call wrote is in the graph of the caller, and this call writes it again."""
    from explainer.fix.codemod import Context, find_codemod
    from explainer.fix.splice import splice
    from tests.fix.rewriting import failed, write

    source = """import torch
net = torch.nn.Linear(4, 2)


def advance(state):
    state[:, 2:] += net(state)
    return state


for _ in range(3):
    state = advance(state)
    energy.append(state[:, 2:].square())
torch.stack(energy).sum().backward()
"""
    program = write(tmp_path, {"train.py": source})
    _, second = find_codemod("read_a_copy")(Context(program=program, incident=failed()))
    assert diff_lines(source, splice(source, second.edits) or "") == [
        "-    state[:, 2:] += net(state)", "+    state = state.clone()", "+    state[:, 2:] += net(state.clone())",
    ]  # fmt: skip


HISTORY = """import torch
from torch import nn
rate = nn.Linear(2, 1)
history = torch.empty(4, 5, 2)
history[0] = torch.rand(5, 2)
for day in range(3):
    now = history[day]
    s, i = now.unbind(1)
    new = rate(now).squeeze(1).sigmoid() * s * i
    history[day + 1] = torch.stack([s - new, i + new], 1)
history.sum().backward()
"""


def test_a_state_that_is_unpacked(tmp_path: pathlib.Path) -> None:
    """By a function or module that is given a view of the tensor, the loop computes with a graph."""
    assert rewritten(tmp_path, "read_a_copy", HISTORY) == HISTORY.replace(
        "= history[day]\n", "= history[day].clone()\n"
    )
