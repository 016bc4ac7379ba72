"""A repaired write in place is held against the failed program's twin: it trains on the values that were used, or it is red."""

from __future__ import annotations

import pathlib

import pytest

from explainer.proof import SAVED, Target, wants_look, with_look
from explainer.repair import _Attempt
from explainer.run import Job
from tests import forked
from tests.verification.programs import chosen

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

SCAN = """import torch
from torch import nn

torch.manual_seed(0)
gate = nn.Parameter(torch.full((8,), 0.3))
optimizer = torch.optim.SGD([gate], lr=0.1)


class Memory:
    def __init__(self, start):
        self.state = start

    def read(self):
        return torch.sin(gate * self.state)


def follow(memory, {name}):
    {name} += 0.1 * memory.read()
    return memory.read().square().mean()


for step in range(4):
    start = torch.linspace(-1, 1, 8) * gate
    memory = Memory(start)
    loss = follow(memory, start)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
WAVE = """import torch

speed = torch.nn.Parameter(torch.full((8,), 0.3))
optimizer = torch.optim.SGD([speed], lr=0.1)
u = torch.linspace(-1, 1, 8) * speed
frames = []
for _ in range(4):
    u += 0.1 * torch.sin(speed * u)
    frames.append(u)
torch.stack(frames).square().mean().backward()
optimizer.step()
"""
CAUSE = "inplace/op-on-saved-tensor"
OTHERWISE = "gradients are not those of the values that the program used before the edit"


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        pytest.param("x += 0.1 * memory.read()", "x = x + 0.1 * memory.read()", "red", id="a name alone"),
        pytest.param(
            "x += 0.1 * memory.read()", "memory.state = x + 0.1 * memory.read()", "green", id="where it is read",
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_an_edit_that_computes_something_else_is_red(
    tmp_path: pathlib.Path, catalog, old: str, new: str, verdict: str
) -> None:
    """The memory reads what was written: with another tensor under the writer's name it reads the old one, and trains as well."""
    choice = chosen(tmp_path / "train.py", text := SCAN.format(name="x"), text.replace(old, new), CAUSE)
    job = Job(command=(forked.python(), "train.py"), root=str(tmp_path), catalog=catalog)
    assert wants_look(Target(), choice)
    target = with_look(job, Target(), choice)
    assert not wants_look(target, choice)
    attempt = _Attempt(job, lambda _: None, target)
    assert attempt._apply(choice.finding, choice.fix)
    proof = attempt._verify(choice.finding, choice.fix)
    attempt.take_all_back()
    assert proof.verdict == verdict
    if verdict == "red":
        assert any(reason.startswith(OTHERWISE) for reason in proof.reasons)
    else:
        assert (proof.comparison.against, proof.comparison.verdict) == ("meant", "same")


HANDED = """def advance(u):
    u += 0.1
    return u


frames = []
for _ in range(4):
    u = advance(u)
    frames.append(u[:2])
"""


@pytest.mark.parametrize("text", [WAVE, HANDED], ids=["in one loop", "by a function that is handed the state"])
def test_a_program_with_two_meanings_has_no_twin_to_be_held_to(tmp_path: pathlib.Path, catalog, text: str) -> None:
    """Every entry of `frames` is the last state; that each should be its own is what its author thought of."""
    choice = chosen(tmp_path / "train.py", text, text.replace("u += ", "u = u + "), CAUSE)
    job = Job(command=(forked.python(), "train.py"), root=str(tmp_path), catalog=catalog)
    assert with_look(job, Target(), choice).meant == ()


def test_the_causes_are_those_of_the_rules(tmp_path: pathlib.Path, catalog) -> None:
    """A cause that is renamed would be held to nothing, in silence; one of a silent run has no forward to be held to."""
    assert set(catalog.cause_ids) >= SAVED
    choice = chosen(tmp_path / "train.py", "", "", min(SAVED))
    assert not wants_look(Target(is_silent=True), choice)


@pytest.mark.parametrize(
    ("line", "is_held"),
    [("+ema = 0.9 * ema + 0.1 * loss.detach()", False), ("+h = h.detach()", True), ("+optimizer.step()", True)],
)
def test_which_edits_are_held_to_what_trained_before(tmp_path: pathlib.Path, line: str, is_held: bool) -> None:  # noqa: FBT001
    """All of the graph, and cuts of any family; not an average of what is over, which the first step had with its graph."""
    patch = f"--- a/x.py\n+++ b/x.py\n{line}\n"
    choice = chosen(tmp_path / "x.py", "", "", "backward/state-carried-across-steps", patch)
    assert wants_look(Target(past=(("0 SGD", 2),)), choice) is is_held
