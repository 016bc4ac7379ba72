"""What another network made for its own loss is given to the next loss without its graph, where a trace saw the two meet."""

from __future__ import annotations

import pathlib
import traceback
from dataclasses import replace

import pytest

from explainer.fix.codemod import Proposal
from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Frame, Incident
from explainer.model.trace import HELD, JOINED, TracedLine
from tests.fix.rewriting import best, diff_lines, failed, write

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

WORLD = """import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)


class World(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec, self.dyn = nn.Linear(4, 6), nn.Linear(6, 4), nn.Linear(8, 6)

    def infer(self, x):
        h = torch.tanh(self.enc(x))
        return {"h": h, "z": torch.tanh(self.dyn(torch.cat([h, x[:, :2]], -1)))}

    def loss(self, states, x):
        return sum(F.mse_loss(self.dec(s), x) for s in states.values())

    def imagine(self, states, policy):
        s = states["h"] + states["z"]
        for _ in range(2):
            s = torch.tanh(self.dyn(torch.cat([s, torch.tanh(policy(s))], -1)))
        return -self.dec(s).mean()


world, policy = World(), nn.Linear(6, 2)
opts = {"world": torch.optim.SGD(world.parameters(), 0.1), "policy": torch.optim.SGD(policy.parameters(), 0.1)}


def update(name, loss):
    opts[name].zero_grad()
    loss.backward()
    opts[name].step()


"""
CUT = "{key: part.detach() for key, part in states.items()}"
# A program, the lines that come in, and the same as its author would write it.
STEPS = {
    "a function that runs both": (
        """def step(x):
    states = world.infer(x)
    update("world", world.loss(states, x))
    if x is not None:
        loss = world.imagine(states, policy)
        update("policy", loss)


for _ in range(3):
    step(torch.randn(8, 4))
""",
        [f"+        states = {CUT}"],
        ("imagine(states,", "imagine({k: v.detach() for k, v in states.items()},"),
    ),
    "a method that is given the states": (
        """class Trainer:
    def learn(self, x):
        states = world.infer(x)
        update("world", world.loss(states, x))
        return states

    def act(self, states):
        total = 0.0
        for one in range(2):
            total = total + world.imagine(states, policy)
        update("policy", total)


trainer = Trainer()
for _ in range(3):
    trainer.act(trainer.learn(torch.randn(8, 4)))
""",
        [f"+        states = {CUT}"],
        ("return states", "return {k: v.detach() for k, v in states.items()}"),
    ),
    "a script, with tensors by their names": (
        """for _ in range(3):
    x = torch.randn(8, 4)
    h, z = world.infer(x).values()
    update("world", world.loss({"h": h, "z": z}, x))
    update("policy", world.imagine({"h": h, "z": z}, policy))
""",
        ["+    h = h.detach()", "+    z = z.detach()"],
        ('imagine({"h": h, "z": z}', 'imagine({"h": h.detach(), "z": z.detach()}'),
    ),
    "an attribute": (
        """class Trainer:
    def learn(self, x):
        self.rows = [(one,) for one in world.infer(x).values()]
        update("world", world.loss({at: one for at, (one,) in enumerate(self.rows)}, x))

    def act(self):
        update("policy", world.imagine({"h": self.rows[0][0], "z": self.rows[1][0]}, policy))


trainer = Trainer()
for _ in range(3):
    trainer.learn(torch.randn(8, 4))
    trainer.act()
""",
        ["+        self.rows = [tuple(part.detach() for part in parts) for parts in self.rows]"],
        ('self.rows[0][0], "z": self.rows[1][0]', 'self.rows[0][0].detach(), "z": self.rows[1][0].detach()'),
    ),
}


def traced(source: str, folder: pathlib.Path) -> Incident:
    """The failure of a program, as a trace saw it."""
    import gradfix

    path = folder / "train.py"
    path.write_text(source)
    with pytest.raises(RuntimeError, match="second time") as caught, gradfix.trace() as seen:
        exec(compile(source, str(path), "exec"), {"__name__": "train"})  # noqa: S102 - the program of a test
    frames = tuple(
        Frame(file=one.filename, line=one.lineno, function=one.name)
        for one in traceback.extract_tb(caught.value.__traceback__)
        if one.filename == str(path)
    )
    record = ExceptionRecord(type="RuntimeError", message=str(caught.value), frames=frames)
    return Incident(exceptions=(record,), traced=seen.lines)


def proposed(source: str, folder: pathlib.Path, incident: Incident) -> tuple[str, Proposal | None]:
    """The program after the edit for a failure; as it was where there is none."""
    found = best("detach_what_was_joined", write(folder, {"train.py": source}), incident=incident)
    return splice(source, found.edits) if found is not None else source, found  # type: ignore[return-value]


def weights(source: str) -> list[torch.Tensor]:
    space: dict = {"__name__": "train"}
    exec(compile(source, "train.py", "exec"), space)  # noqa: S102 - the program of a test
    return [one.detach() for net in (space["world"], space["policy"]) for one in net.parameters()]


@pytest.mark.parametrize(("step", "lines", "meant"), STEPS.values(), ids=STEPS)
def test_the_states_are_data(step: str, lines: list[str], meant: tuple[str, str], tmp_path: pathlib.Path) -> None:
    """Behind the other network's step, whatever helper makes it; the weights become those that its author means."""
    source = WORLD + step
    after, found = proposed(source, tmp_path, traced(source, tmp_path))
    assert diff_lines(source, after) == lines
    assert found is not None
    assert found.applicability is None
    wanted = weights(source.replace(*meant))
    assert all(torch.equal(one, other) for one, other in zip(weights(after), wanted, strict=True))


def test_an_optimizer_that_is_cleared_behind_its_step(tmp_path: pathlib.Path) -> None:
    """What the policy's loss would leave in the world's weights would count: its author may mean that."""
    clear, step = "    opts[name].zero_grad()\n", "    opts[name].step()\n"
    source = WORLD.replace(clear, "").replace(step, step + clear) + STEPS["a function that runs both"][0]
    _, found = proposed(source, tmp_path, traced(source, tmp_path))
    assert found is not None
    assert found.applicability == "unsafe"


FLAT = STEPS["a function that runs both"][0].replace(
    "loss = world.imagine(states, policy)", "loss = world.imagine(flat(states), policy)"
).replace("def step", 'def flat(states):\n    return {"h": states["h"].reshape(-1, 6), "z": states["z"].data}\n\n\ndef step')  # fmt: skip


def test_the_line_that_takes_it_up_where_no_name_holds_it(tmp_path: pathlib.Path) -> None:
    """Of a function with one caller, and a method of one tensor."""
    source = WORLD + FLAT
    seen = traced(source, tmp_path)
    lines = tuple(one for one in seen.traced if one.kind != HELD)
    after, found = proposed(source, tmp_path, replace(seen, traced=lines))
    assert [one.kind for one in lines][:1] == [JOINED]
    assert found is not None
    assert 'states["h"].detach().reshape(-1, 6)' in after


LEFT = {
    "a function with two callers": FLAT + "kept = flat\nif False:\n    flat({})\n",
    "an operation of two tensors": STEPS["a function that runs both"][0],
}


@pytest.mark.parametrize("step", LEFT.values(), ids=LEFT)
def test_others_are_left_alone(step: str, tmp_path: pathlib.Path) -> None:
    source = WORLD + step
    seen = traced(source, tmp_path)
    lines = tuple(one for one in seen.traced if one.kind != HELD)
    assert proposed(source, tmp_path, replace(seen, traced=lines)) == (source, None)


@pytest.mark.parametrize(
    ("text", "operation", "saved", "wanted"),
    [
        ("total = total + F.l1_loss(f, r)", "l1_loss", "1", "total = total + F.l1_loss(f, r.detach())"),
        ("loss = criterion(fake - real)", "sub", "1", "loss = criterion(fake - real.detach())"),
        ("loss = (scores * fake).mean()", "mul", "0", "loss = (scores.detach() * fake).mean()"),
        ("return torch.cat(rows)", "cat", "all", "return torch.cat(rows).detach()"),
        ("return torch.cat(a), torch.cat(b)", "cat", "all", None),  # which of the two is not known
        ("loss = a * b + c * d", "mul", "0", None),  # which of the two is not known
        ("loss = F.l1_loss(*pair)", "l1_loss", "1", None),
    ],
)
def test_the_operand_that_a_trace_saw_take_it_up(
    text: str, operation: str, saved: str, wanted: str | None, tmp_path: pathlib.Path
) -> None:
    """Of an operation of two the one that leads into the freed graph is data."""
    source = f"def matched(total, a, b, c, d):\n    {text}\n"
    line = TracedLine(kind=JOINED, operation=operation, file="train.py", line=2, function="matched", saved=saved)
    incident = replace(failed({"train.py": 2}), traced=(line,))
    found = best("detach_what_was_joined", write(tmp_path, {"train.py": source}), incident=incident)
    after = splice(source, found.edits) if found is not None else None
    assert after == (source.replace(text, wanted) if wanted else None)
