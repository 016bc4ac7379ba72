"""What is held against a run, and what is not: a loss that was thrown away, a network whose turn has not come."""

from __future__ import annotations

import math

import pytest

from explainer.model.verification import Failure, ParameterHealth, ProcessReport, Refused, StepRow
from explainer.verification.command import Ended
from explainer.verification.judge import judge, silent_faults

FIRST, SECOND = "0 Adam", "1 Adam"


def weight(optimizer: str, *, given: int = 3, moved: int = 3, bad: int = 0, trains: bool = True) -> ParameterHealth:
    return ParameterHealth(
        name=f"w{optimizer[0]}", optimizer=optimizer, trains=trains, given=given, moved=moved, bad=bad
    )


def rows(optimizer: str, *steps: int, norm: float | None = 1.0) -> tuple[StepRow, ...]:
    return tuple(StepRow(optimizer=optimizer, step=one, parameters=1, given=1, zero=0, norm=norm) for one in steps)


def process(*, is_stopped: bool = True, **given) -> ProcessReport:
    return ProcessReport(pid=1, is_stopped=is_stopped, steps=((FIRST, 3), (SECOND, 3)), **given)


MISFIT = (
    'Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "a.weight", "a.bias". \n\tUnexpected key(s) in '
    'state_dict: "module.a.weight". \n\tsize mismatch for b.weight: copying a param with shape torch.Size([3, 4]) from checkpoint, '
    "the shape in current model is torch.Size([3, 3])."
)
TRAINS = {"rows": rows(FIRST, 0, 1, 2), "parameters": (weight(FIRST),)}
GREEN = {
    "all is well": process(**TRAINS, losses=(1.0, 0.9, 0.8)),
    "a loss that was thrown away": process(**TRAINS, losses=(1.0, math.nan, 0.9), left_out=(1,)),
    "a parameter without a gradient beside one with": process(
        rows=rows(FIRST, 0, 1, 2), parameters=(weight(FIRST), weight(FIRST, given=0, moved=0))
    ),
    "a frozen parameter": process(
        rows=rows(FIRST, 0, 1, 2), parameters=(weight(FIRST), weight(SECOND, given=0, moved=0, trains=False))
    ),
    "a frozen segment whose parameters train elsewhere": process(
        **TRAINS, uses=("checkpoint", "checkpoint without inputs")
    ),
    "one step with zero gradients": process(rows=rows(FIRST, 0, norm=0.0), parameters=(weight(FIRST, moved=0),)),
}
RED = {
    "a loss that was stepped with": (process(**TRAINS, losses=(1.0, math.nan, 0.9)), "the loss of backward 2 is nan"),
    "another one than that thrown away": (
        process(**TRAINS, losses=(math.inf, math.nan, 0.9), left_out=(0,)), "the loss of backward 2 is nan",
    ),
    "a gradient that is not finite": (
        process(rows=rows(FIRST, 0, norm=None), parameters=(weight(FIRST, bad=1),)), "step 1 of the 1st optimizer (Adam)",
    ),
    "an optimizer without gradients": (
        process(rows=rows(FIRST, 0, 1, 2), parameters=(weight(FIRST), weight(SECOND, given=0, moved=0))),
        "no parameter of the 2nd optimizer (Adam) got a gradient",
    ),
    "a segment without a graph": (
        process(
            rows=rows(FIRST, 0, 1, 2), parameters=(weight(FIRST), weight(FIRST, given=0, moved=0)),
            uses=("checkpoint", "checkpoint without inputs"),
        ),
        "a parameter of the 1st optimizer (Adam) got no gradient: a checkpointed segment",
    ),
    "a state that was refused": (
        process(**TRAINS, refused=(Refused(module="Net", message=MISFIT, text="", file="/a/train.py", line=41),)),
        "train.py:41 was refused the state that it loads, and the program went on without it: missing keys a.weight and 1 more, "
        "unexpected keys module.a.weight, other sizes of b.weight",
    ),
    "nothing but zeros": (
        process(rows=rows(FIRST, 0, 1, 2), parameters=(weight(FIRST, moved=0),)),
        "all gradients of the 1st optimizer (Adam) are zero over 3 steps",
    ),
}  # fmt: skip
WAITING = {
    "rows": (*rows(FIRST, 0, 1, 2), *rows(SECOND, 0, 1, 2)),
    "parameters": (weight(FIRST), weight(SECOND, moved=0)),
}
DONE = Ended(status=0, seconds=1.0)


@pytest.mark.parametrize("one", GREEN.values(), ids=GREEN.keys())
def test_green(one: ProcessReport) -> None:
    """Nothing is held against it, watched or run."""
    assert judge(DONE, (one,))[:2] == ("green", ())
    assert silent_faults((one,)) == ()


@pytest.mark.parametrize(("one", "says"), RED.values(), ids=RED.keys())
def test_red(one: ProcessReport, says: str) -> None:
    """Red says why."""
    verdict, reasons, _ = judge(DONE, (one,))
    assert verdict == "red"
    assert [reason for reason in reasons if reason.startswith(says)]


def test_zeros_beside_what_trains() -> None:
    """A program that was stopped may have meant them to come later: no proof; one that ended has not."""
    verdict, reasons, _ = judge(DONE, (process(**WAITING),))
    assert verdict == "inconclusive"
    assert reasons == (
        "all gradients of the 2nd optimizer (Adam) are zero over 3 steps, while another trains: --steps goes on to where it should",
    )
    assert judge(DONE, (process(**WAITING, is_stopped=False),))[0] == "red"


def test_steps_that_were_not_looked_at() -> None:
    """A long run is looked at now and then, and says so."""
    seen = process(rows=rows(FIRST, 0, 1, 2, 10, 30), parameters=(weight(FIRST, moved=0),), is_stopped=False)
    assert silent_faults((seen,)) == (
        "all gradients of the 1st optimizer (Adam) are zero over 5 steps that were looked at",
    )


def test_what_was_thrown_away_is_told() -> None:
    """A green verdict names it."""
    told = judge(DONE, (GREEN["a loss that was thrown away"],))[2]
    assert told == ("1 loss was not finite, and the program made no step with that",)


def test_an_exception_that_the_status_tells_is_one_reason() -> None:
    """Where the command ends well it is the only one who tells."""
    failure = Failure(type="RuntimeError", message="it broke", where="uncaught", text="torch/nn/modules/linear.py")
    failed = ProcessReport(pid=1, failures=(failure,))
    assert judge(Ended(status=1, seconds=1.0), [failed])[1] == ("it failed: RuntimeError: it broke",)
    assert judge(Ended(status=0, seconds=1.0), [failed])[1] == ("a process of it was ended by RuntimeError: it broke",)


@pytest.mark.parametrize(
    ("made", "is_silent", "is_stopped", "verdict"),
    [(40, True, False, "green"), (40, False, False, "inconclusive"), (40, True, True, "inconclusive"), (5, True, False, "inconclusive")],
)  # fmt: skip
def test_a_program_that_learns_when_to_end(made: int, is_silent: bool, is_stopped: bool, verdict: str) -> None:
    """What had ended well is past any failure once it has run to its end, unless hardly a step is left of it."""
    one = ProcessReport(pid=1, is_stopped=is_stopped, steps=((FIRST, made),), **TRAINS, losses=(1.0, 0.9, 0.8))
    assert judge(DONE, (one,), ((FIRST, 100),), is_silent=is_silent)[0] == verdict
