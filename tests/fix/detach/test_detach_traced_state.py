"""What a trace saw carried from step to step is detached where it is kept, or where it is taken up; the program then trains."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import diff_lines, failed, write

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

TOP = """import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
"""
LOOP = """
store = Store()
for step in range(3):
    hidden = cell(torch.randn(2, 3), store.read())
    loss = head(hidden).square().mean() + hidden.abs().mean()
    {order}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SLOTS = """
class Store:
    def __init__(self):
        self.slots = {}

    def read(self):
        return torch.stack([self.slots.get(n, torch.zeros(4)) for n in "ab"])

    def write(self, hidden):
        for i, n in enumerate("ab"):
            self.slots[n] = hidden[i]
"""
QUEUE = """
class Store:
    def __init__(self):
        self.rows = [torch.zeros(2, 4)]

    def read(self):
        return self.rows[-1] * 0.9

    def write(self, hidden):
        self.rows.append(hidden.tanh())
"""
ROWS = """
class Store:
    def __init__(self):
        self.rows = [torch.zeros(4), torch.zeros(4)]

    def read(self):
        return torch.stack(self.rows)

    def write(self, hidden):
        self.rows = [row.tanh() for row in hidden]
"""
BLEND = """
class Store:
    def __init__(self):
        self.state = torch.zeros(2, 4)

    def read(self):
        return 0.5 * self.state

    def write(self, hidden):
        self.state = hidden
"""
CLOSURE = """
def Store():
    memory = {"mean": torch.zeros(2, 4)}

    def read():
        return memory["mean"] * 0.5

    def write(hidden):
        memory["mean"] = hidden

    return type("Pair", (), {"read": staticmethod(read), "write": staticmethod(write)})
"""
NONLOCAL = """
def Store():
    state = torch.zeros(2, 4)

    def read():
        return 0.5 * state

    def write(hidden):
        nonlocal state
        state = hidden

    return type("Pair", (), {"read": staticmethod(read), "write": staticmethod(write)})
"""
CARRIED = {
    "a closure's name": (NONLOCAL, ["-        return 0.5 * state", "+        return 0.5 * state.detach()"]),
    "slots of a dictionary": (SLOTS, ["-            self.slots[n] = hidden[i]", "+            self.slots[n] = hidden[i].detach()"]),
    "a list": (QUEUE, ["-        self.rows.append(hidden.tanh())", "+        self.rows.append(hidden.tanh().detach())"]),
    "a list that is made anew": (ROWS, ["-        self.rows = [row.tanh() for row in hidden]", "+        self.rows = [row.tanh().detach() for row in hidden]"]),
    "a closure's dictionary": (CLOSURE, ['-        return memory["mean"] * 0.5', '+        return memory["mean"].detach() * 0.5']),
    "what its own step trains on": (BLEND, ["-        return 0.5 * self.state", "+        return 0.5 * self.state.detach()"]),
}  # fmt: skip


def run(folder: pathlib.Path, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(text)
    spec = importlib.util.spec_from_file_location(f"{folder.name.replace('-', '_')}_{name}", folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    sys.dont_write_bytecode = True
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


@pytest.mark.parametrize("order", ["store.write(hidden)", "pass"])
@pytest.mark.parametrize(("store", "changes"), CARRIED.values(), ids=CARRIED)
def test_what_was_carried_is_detached(store: str, changes: list[str], order: str, tmp_path: pathlib.Path) -> None:
    """Written before the backward or behind the step; the edited program runs to its end."""
    import gradfix

    text = TOP + store + LOOP.format(order=order) + ("" if "write" in order else "    store.write(hidden)\n")
    with pytest.raises(RuntimeError, match="second time"), gradfix.trace() as seen:
        run(tmp_path, "train", text)
    program = write(tmp_path, {"train.py": text})
    incident = replace(failed(), traced=seen.lines)
    found = list(find_codemod("detach_traced_state")(Context(program=program, incident=incident)))
    after = splice(text, found[0].edits)
    assert after is not None
    assert diff_lines(text, after) == changes
    run(tmp_path, "fixed", after)


STEP = """
def stepper():
    hidden = torch.zeros(2, 4)

    def step(x):
        nonlocal hidden
        hidden = cell(x, hidden)
        optimizer.zero_grad()
        head(hidden).square().mean().backward()
        optimizer.step()

    return step


step = stepper()
for _ in range(3):
    step(torch.randn(2, 3))
"""


def test_a_name_of_the_function_around_is_taken_up_without_its_graph(tmp_path: pathlib.Path) -> None:
    """The closure that trains binds the state itself, `nonlocal hidden`."""
    import gradfix

    with pytest.raises(RuntimeError, match="second time"), gradfix.trace() as seen:
        run(tmp_path, "train", TOP + STEP)
    program = write(tmp_path, {"train.py": TOP + STEP})
    incident = replace(failed(), traced=seen.lines)
    (found,) = find_codemod("detach_traced_state")(Context(program=program, incident=incident))
    after = splice(TOP + STEP, found.edits)
    assert after is not None
    assert diff_lines(TOP + STEP, after) == [
        "-        hidden = cell(x, hidden)",
        "+        hidden = cell(x, hidden.detach())",
    ]
    run(tmp_path, "fixed", after)


SUM = """
total = 0.0
for step in range(2):
    total = total + head(cell(torch.randn(2, 3))).mean()
    total.backward()
"""


AVERAGE = """
usual = torch.zeros(())
for step in range(3):
    loss = head(cell(torch.randn(2, 3))).square().mean()
    usual = 0.9 * usual + 0.1 * loss
    optimizer.zero_grad()
    (loss / (1 + usual)).backward()
    optimizer.step()
"""


@pytest.mark.parametrize("text", [SUM, AVERAGE], ids=["a sum", "an average of losses"])
def test_a_sum_is_not_cut(text: str, tmp_path: pathlib.Path) -> None:
    """What goes on being added to is no state: it is to begin anew; an average has no graph at all, this step's loss included."""
    import gradfix

    with pytest.raises(RuntimeError, match="second time|inplace operation"), gradfix.trace() as seen:
        run(tmp_path, "train", TOP + text)
    program = write(tmp_path, {"train.py": TOP + text})
    incident = replace(failed(), traced=seen.lines)
    assert not list(find_codemod("detach_traced_state")(Context(program=program, incident=incident)))


SOLVER = """
kept = {"dual": torch.zeros(4)}


def solve(cost):
    dual = kept["dual"]
    for _ in range(2):
        row = torch.tanh(dual - cost)
        dual = torch.sigmoid(row.sum(0) + cost.mean(0))
    kept["dual"] = dual
    return (row + dual).mean()


for step in range(3):
    optimizer.zero_grad()
    solve(cell(torch.randn(2, 3))).backward()
    optimizer.step()
"""


def test_what_its_own_step_computes_with_is_detached_where_it_is_kept(tmp_path: pathlib.Path) -> None:
    """Iterations that begin where the last step's ended: neither the line that made it nor the one that takes it up may cut."""
    import gradfix

    with pytest.raises(RuntimeError, match="second time"), gradfix.trace() as seen:
        run(tmp_path, "train", TOP + SOLVER)
    program = write(tmp_path, {"train.py": TOP + SOLVER})
    incident = replace(failed(), traced=seen.lines)
    (found,) = find_codemod("detach_traced_state")(Context(program=program, incident=incident))
    after = splice(TOP + SOLVER, found.edits)
    assert after is not None
    assert diff_lines(TOP + SOLVER, after) == ['-    kept["dual"] = dual', '+    kept["dual"] = dual.detach()']
    run(tmp_path, "fixed", after)


UNROLL = """
class Learner:
    def __init__(self):
        self.state = torch.zeros(2, 4)

    def unroll(self):
        total = 0.0
        for _ in range(3):
            hidden = cell(torch.randn(2, 3), self.state)
            self.state = hidden * 0.9
            total = total + head(hidden).square().mean()
        return total


learner = Learner()
for step in range(3):
    optimizer.zero_grad()
    learner.unroll().backward()
    optimizer.step()
"""


def unrolled(folder: pathlib.Path, text: str) -> list[list[str]]:
    """What each edit changes in a program that goes back through a later step's state."""
    import gradfix

    with pytest.raises(RuntimeError, match="second time"), gradfix.trace() as seen:
        run(folder, "train", text)
    context = Context(program=write(folder, {"train.py": text}), incident=replace(failed(), traced=seen.lines))
    return [
        diff_lines(text, splice(text, one.edits) or "")
        for one in find_codemod("detach_traced_state")(context)
        if one.edits
    ]


def test_rounds_that_go_back_together_keep_their_graph(tmp_path: pathlib.Path) -> None:
    """The loop over time takes the state up in its next round: the cut stands before it, where the last step ended."""
    first, *others = unrolled(tmp_path, TOP + UNROLL)
    assert first == ["+        self.state = self.state.detach()"]
    assert all(one == first for one in others)
    after = (TOP + UNROLL).replace(
        "        for _ in range(3):", "        self.state = self.state.detach()\n        for _ in range(3):"
    )
    run(tmp_path, "fixed", after)


def test_a_state_that_may_be_none_is_not_detached_before_the_loop(tmp_path: pathlib.Path) -> None:
    text = (TOP + UNROLL).replace("self.state = torch.zeros(2, 4)", "self.state = None")
    assert unrolled(tmp_path, text) == []


KEPT_SUM = """
class Penalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.aux = nn.Linear(3, 1), torch.zeros(())

    def forward(self, x):
        out = self.fc(x)
        self.aux = self.aux + out.square().mean()
        return out

net = Penalised()
for step in range(2):
    loss = net(torch.randn(2, 3)).mean()
    (loss + net.aux).backward()
"""


def test_what_the_loss_of_its_own_step_reads_is_stored_with_its_graph(tmp_path: pathlib.Path) -> None:
    """The term of this step is to train: only what was added before it loses its graph."""
    import gradfix

    with pytest.raises(RuntimeError, match="second time"), gradfix.trace() as seen:
        run(tmp_path, "train", TOP + KEPT_SUM)
    program = write(tmp_path, {"train.py": TOP + KEPT_SUM})
    incident = replace(failed(), traced=seen.lines)
    changed = [
        [line for line in diff_lines(TOP + KEPT_SUM, splice(TOP + KEPT_SUM, one.edits) or "") if line.startswith("+")]
        for one in find_codemod("detach_traced_state")(Context(program=program, incident=incident))
    ]
    assert changed == [["+        self.aux = self.aux.detach() + out.square().mean()"]]


KEEPER = """
class Keeper:
    def __init__(self):
        self.usual = None

    def penalty(self, entropy):
        return 0.0 * entropy if self.usual is None else (entropy - self.usual) ** 2

    def observe(self, entropy):
        if self.usual is None:
            self.usual = entropy
        else:
            self.usual = 0.9 * self.usual + 0.1 * entropy

keeper = Keeper()
for step in range(3):
    entropy = head(cell(torch.randn(2, 3))).mean()
    loss = keeper.penalty(entropy)
    keeper.observe(entropy)
    loss.backward()
"""


@pytest.mark.parametrize(
    ("text", "is_first"),
    [(KEEPER, True), (KEEPER.replace("    loss.backward()", "    (loss + keeper.usual).backward()"), False)],
    ids=["what nothing else reads", "what the loss reads too"],
)
def test_what_a_method_of_its_own_keeps_is_detached_there(text: str, is_first: bool, tmp_path: pathlib.Path) -> None:
    """Not where it is read, which would let the graphs of all steps pile up in what is kept."""
    import gradfix

    with pytest.raises(RuntimeError, match="second time"), gradfix.trace() as seen:
        run(tmp_path, "train", TOP + text)
    program = write(tmp_path, {"train.py": TOP + text})
    incident = replace(failed(), traced=seen.lines)
    found = list(find_codemod("detach_traced_state")(Context(program=program, incident=incident)))
    wanted = [
        "+            self.usual = entropy.detach()",
        "+            self.usual = (0.9 * self.usual + 0.1 * entropy).detach()",
    ]
    changed = [
        [line for line in diff_lines(TOP + text, splice(TOP + text, one.edits) or "") if line[0] == "+"]
        for one in found
    ]
    assert (wanted in changed) == is_first
    if is_first:
        assert max(found, key=lambda one: one.belief).edits == found[changed.index(wanted)].edits
        run(tmp_path, "fixed", splice(TOP + text, found[changed.index(wanted)].edits) or "")


METER = """
class Meter:
    def __init__(self):
        self.total = torch.zeros(())

    def update(self, value):
        self.total += value


meter = Meter()
for step in range(3):
    optimizer.zero_grad()
    loss = head(cell(torch.randn(2, 3))).square().mean()
    meter.update(loss)
    (loss / meter.total).backward()
    optimizer.step()
"""
WORLD = """
def world():
    seen = torch.zeros(2, 3)
    while True:
        action = yield seen
        seen = torch.tanh(seen + action)


run = world()
seen = next(run)
for step in range(3):
    optimizer.zero_grad()
    seen = run.send(head(cell(seen)))
    seen.square().mean().backward()
    optimizer.step()
"""


def test_a_sum_that_is_kept_goes_on_without_what_is_over(tmp_path: pathlib.Path) -> None:
    """What is added keeps its graph."""
    assert mended(tmp_path, METER) == [
        "-        self.total += value", "+        self.total = self.total.detach() + value"
    ]  # fmt: skip


def test_a_generator_s_names_outlive_a_step(tmp_path: pathlib.Path) -> None:
    """The state that it holds, and the name that the loop holds what it handed out by."""
    assert mended(tmp_path, WORLD) == [
        "-        seen = torch.tanh(seen + action)",
        "+        seen = torch.tanh(seen.detach() + action)",
        "-    seen = run.send(head(cell(seen)))",
        "+    seen = run.send(head(cell(seen.detach())))",
    ]


def mended(folder: pathlib.Path, text: str) -> list[str]:
    """What the one edit changes of a program that it was traced for, and that runs with it."""
    import gradfix

    with pytest.raises(RuntimeError, match="second time"), gradfix.trace() as seen:
        run(folder, "train", TOP + text)
    program = write(folder, {"train.py": TOP + text})
    (found,) = find_codemod("detach_traced_state")(
        Context(program=program, incident=replace(failed(), traced=seen.lines))
    )
    after = splice(TOP + text, found.edits)
    assert after is not None
    run(folder, "fixed", after)
    return diff_lines(TOP + text, after)


AVERAGE = """
class Running:
    def __init__(self, start=0.0):
        self.value = start

    def update(self, new):
        self.value = 0.9 * self.value + 0.1 * new


centre, shown = Running(torch.zeros(4)), Running()
for step in range(3):
    code = cell(torch.randn(2, 3))
    loss = head(code).square().mean() + (code - centre.value).square().mean()
    centre.update(code.mean(0))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shown.update(loss.item())
"""


def test_what_keeps_numbers_as_well_is_given_a_tensor_without_a_graph(tmp_path: pathlib.Path) -> None:
    """A number has no `detach`: that inside of the average fails, and the one where it is called is the next edit."""
    import gradfix

    text = TOP + AVERAGE
    with pytest.raises(RuntimeError, match="second time"), gradfix.trace() as seen:
        run(tmp_path, "train", text)
    context = Context(program=write(tmp_path, {"train.py": text}), incident=replace(failed(), traced=seen.lines))
    inside, outside = sorted(find_codemod("detach_traced_state")(context), key=lambda one: -one.belief)[:2]
    with pytest.raises(AttributeError, match="'float'"):
        run(tmp_path, "inside", str(splice(text, inside.edits)))
    after = str(splice(text, outside.edits))
    assert diff_lines(text, after) == ["-    centre.update(code.mean(0))", "+    centre.update(code.mean(0).detach())"]
    run(tmp_path, "fixed", after)
