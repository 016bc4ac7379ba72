"""A program that gives up by an exception of its own, after values that stopped being finite, is told what made these."""

from __future__ import annotations

import pathlib

import pytest

import gradfix
from explainer.catalog.bundle import load_catalog
from explainer.model.incident import ExceptionRecord, Frame, Incident
from explainer.model.trace import NOT_FINITE, WRITE, TracedLine
from explainer.run import Job, gives_up, sharpen
from tests import forked
from tests.gate import some_at_gate
from tests.live.running import run_on_transformers

TOLD = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    raise {0}({1!r})\n{0}: {1}\n'
GUARDS = [
    "FloatingPointError: step 3: loss 0.0, grad_norm nan",
    "FloatingPointError: step 3",
    "RuntimeError: gradient norm inf",
    "RuntimeError: step 7: gnorm = nan",
    "RuntimeError: non-finite gradients at step 3",
    "RuntimeError: training diverged at step 12",
    "RuntimeError: the loss diverged (nan)",
    "ValueError: NaN detected at step 5",
    "ArithmeticError: loss went to nan",
    "RuntimeError: Non-finite values, aborting",
]
OTHERS = [
    "RuntimeError: loss 3.2, grad_norm 4.1",
    "RuntimeError: grad_norm info is missing",
    "RuntimeError: the branches have diverged",
    "RuntimeError: norm of inferred type",
    "FloatingPointError: divide by zero encountered in log",
    "ValueError: NaN found in column age",
    "KeyError: 'nan'",
]


def causes(guard: str) -> list[str]:
    kind, _, message = guard.partition(": ")
    return [one.cause for one in gradfix.explain(TOLD.format(kind, message)).findings]


@pytest.mark.parametrize("guard", OTHERS)
def test_what_says_nothing_of_values(guard: str) -> None:
    """Finite values, other things that diverge, and what NumPy or a table says."""
    assert not [one for one in causes(guard) if one.startswith("nan/") and one != "nan/bad-input"]


@pytest.mark.parametrize("guard", GUARDS)
def test_a_guard_is_known_by_its_words(guard: str) -> None:
    """All that it proves is that something is not finite: the cause is one of that family."""
    assert causes(guard)[0].startswith("nan/")


def ended(code: str, kind: str = NOT_FINITE, library: str | None = None) -> Incident:
    frame = Frame(file="train.py", line=9, function="check", code=code, library=library)
    traced = TracedLine(kind=kind, operation="log", file="train.py", line=4)
    return Incident(exceptions=(ExceptionRecord(type="Stop", message="step 3", frames=(frame,)),), traced=(traced,))


@pytest.mark.parametrize(
    ("incident", "expected"),
    [
        (ended('raise Stop(f"step {step}")'), True),
        (ended('rows["nan"]'), False),
        (ended('raise Stop("step 3")', kind=WRITE), False),
        (ended('raise Stop("step 3")', library="transformers"), False),
        (Incident(), False),
    ],
    ids=["its own raise", "an error of another kind", "all values finite", "a library's", "no exception"],
)
def test_what_gives_up(incident: Incident, expected: bool) -> None:  # noqa: FBT001
    """The program's own line raises, and a trace saw a value that is not finite."""
    assert gives_up(incident) is expected


PROGRAM = """import torch

class Stop(Exception):
    pass

class Guard:
    def after(self, step, loss):
        if not torch.isfinite(loss):
            raise Stop(MESSAGE)

torch.manual_seed(0)
net = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    loss = (net(torch.randn(8, 4)) - 9).log().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    Guard().after(step, loss)
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    "message",
    some_at_gate({"no word of it": 'f"enough of step {step}"', "its value": 'f"{loss.item()}"'}, ["no word of it"]),
)
def test_the_operation_is_told(message: str, tmp_path: pathlib.Path) -> None:
    """Whatever the guard says, the trace finds the line."""
    (tmp_path / "train.py").write_text(PROGRAM.replace("MESSAGE", message))
    done, _ = run_on_transformers(tmp_path, "train.py")
    job = Job(command=(forked.python(), "train.py"), root=str(tmp_path), catalog=load_catalog())
    report = sharpen(job, done, lambda _: None).report
    assert report is not None
    assert report.findings[0].cause == "nan/log-of-zero"
    assert report.findings[0].culprits[0].line == 15
