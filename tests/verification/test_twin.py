"""Checkpointing that computes wrong gradients in silence is red, though every number of it is healthy."""

from __future__ import annotations

import pathlib

import pytest

from explainer.verification.against import verify_with_twin
from explainer.verification.difference import compare_runs
from explainer.verification.verify import Watch, verify_command
from tests import forked
from tests.verification.programs import CHECKPOINTED, IN_PLACE, NON_REENTRANT, OUT_OF_PLACE, PLAIN

pytestmark = pytest.mark.torch
RIGHT = CHECKPOINTED.format(act=OUT_OF_PLACE, call=NON_REENTRANT)
WRONG = CHECKPOINTED.format(act=IN_PLACE, call=NON_REENTRANT)
# The block is to run twice a step; without checkpointing it runs once.
COUNTING = RIGHT.replace(
    "        g = self", "        self.calls = getattr(self, 'calls', 0) + 1\n        g = self"
).replace("    optimizer.step()", "    assert block.calls % 2 == 0\n    optimizer.step()")
VERDICTS = {
    "nothing is written": (RIGHT, "green", "same", ""),
    "a write in place": (WRONG, "red", "different", "gradients are not those without activation checkpointing: 3 of 6"),
    "random at every run": (
        RIGHT.replace("manual_seed(0)", "seed()"), "inconclusive", "unknown", "two runs of the program give different first",
    ),
    "a twin that cannot run": (
        COUNTING, "green", "unknown", "could not be compared with those without activation checkpointing: it failed: AssertionError",
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _torch():
    pytest.importorskip("torch")


def run(folder: pathlib.Path, text: str, **watch):
    (folder / "train.py").write_text(text)
    return verify_command((forked.python(), "train.py"), str(folder), Watch(**watch))


@pytest.mark.slow  # what the examples repair is held against its twin always
@pytest.mark.parametrize(
    ("text", "verdict", "compared", "says"),
    [pytest.param(*one, id=name) for name, one in VERDICTS.items()],
)
def test_held_against_its_twin(tmp_path: pathlib.Path, text: str, verdict: str, compared: str, says: str) -> None:
    """Red needs a difference that the program itself does not make from run to run."""
    proof = run(tmp_path, text)
    assert proof.verdict == "green"
    told = verify_with_twin((forked.python(), "train.py"), str(tmp_path), Watch(), proof)
    assert (told.verdict, told.comparison.verdict) == (verdict, compared)
    assert any(says in one for one in (*told.reasons, *told.notes)) or not says


def test_a_twin_has_the_gradients_that_were_meant(tmp_path: pathlib.Path) -> None:
    """The twin of the program that writes in place agrees with a program that writes out of place and checkpoints nothing."""
    meant = run(tmp_path, CHECKPOINTED.format(act=OUT_OF_PLACE, call=PLAIN))
    wrong, twin = run(tmp_path, WRONG), run(tmp_path, WRONG, is_twin=True)
    assert compare_runs("twin", meant.processes, twin.processes).verdict == "same"
    assert compare_runs("twin", meant.processes, wrong.processes).verdict == "different"


@pytest.mark.slow
def test_what_a_program_uses_is_told(tmp_path: pathlib.Path) -> None:
    """A twin is worth its time only where checkpointing or compiled code is in the way."""
    compiled = CHECKPOINTED.format(act=OUT_OF_PLACE, call="torch.compile(block, backend='eager')(torch.randn(2, 4))")
    assert run(tmp_path, RIGHT, steps=1).processes[0].uses == ("checkpoint",)
    assert run(tmp_path, compiled, steps=1).processes[0].uses == ("compile",)
    assert run(tmp_path, compiled, steps=1, is_twin=True).processes[0].uses == ()
