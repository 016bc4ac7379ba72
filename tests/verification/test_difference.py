"""Which first gradients are the same, which differ, and which cannot be compared."""

from __future__ import annotations

import math

import pytest

from explainer.model.verification import FirstStep, Gradient, ProcessReport
from explainer.verification.difference import changed_of_trained, compare_runs


def small(name: str, *values: float) -> Gradient:
    norm = math.sqrt(sum(one * one for one in values))
    return Gradient(name=name, shape=(len(values),), values=values, norm=norm, largest=max(map(abs, values)))


def large(name: str, norm: float, *projections: float) -> Gradient:
    return Gradient(name=name, shape=(9000,), norm=norm, largest=norm, projections=projections)


def run(*gradients: Gradient, losses: tuple[float, ...] = (1.0,), key: str = "0 SGD", **process) -> ProcessReport:
    return ProcessReport(
        pid=1,
        first=(FirstStep(optimizer=key, losses=losses, gradients=gradients),),
        **{"dtypes": ("float32",), **process},
    )


NONE = Gradient(name="w", shape=(2,), given=False)
NAN = float("nan")
SAME = {
    "equal": (run(small("w", 1.0, 2.0)), run(small("w", 1.0, 2.0))),
    "but for rounding": (run(small("w", 1.0, 2.0)), run(small("w", 1.0, 2.0001))),
    "none and zero": (run(NONE, small("b", 1.0)), run(small("w", 0.0, 0.0), small("b", 1.0))),
    "zero but for rounding, beside a large one": (
        run(small("w", 0.0), small("b", 100.0)), run(small("w", 9e-5), small("b", 100.0)),
    ),
    "half precision": (run(small("w", 1.0), dtypes=("bfloat16",)), run(small("w", 1.02), dtypes=("bfloat16",))),
    "autocast": (run(small("w", 1.0), autocast=("cuda float16",)), run(small("w", 1.004))),
    "under another wrapper": (run(small("Net.w", 1.0), small("Net.b", 2.0)), run(small("M.w", 1.0), small("M.b", 2.0))),
    "other order": (run(small("w", 1.0), small("b", 2.0)), run(small("b", 2.0), small("w", 1.0))),
    "large": (run(large("w", 5.0, 3.0, -4.0)), run(large("w", 5.0, 3.0001, -4.0))),
    "two backwards made one": (run(small("w", 1.0), losses=(0.5, 0.5)), run(small("w", 1.0), losses=(1.0,))),
}  # fmt: skip
DIFFERENT = {
    "a value": (run(small("w", 1.0, 2.0)), run(small("w", 1.0, 2.001))),
    "a sign": (run(small("w", 1.0)), run(small("w", -1.0))),
    "none for one": (run(small("w", 0.5, 0.5)), run(NONE)),
    "one for none": (run(NONE), run(small("w", 0.5, 0.5))),
    "not a number": (run(small("w", 1.0)), run(small("w", NAN))),
    "a large one of equal norm": (run(large("w", 5.0, 3.0, -4.0)), run(large("w", 5.0, -4.0, 3.0))),
    "too much for half precision": (run(small("w", 1.0), dtypes=("bfloat16",)), run(small("w", 1.1))),
    "the loss": (run(small("w", 1.0)), run(small("w", 1.0), losses=(1.1,))),
}  # fmt: skip
UNKNOWN = {
    "other parameters": (run(small("w", 1.0)), run(small("w", 1.0), small("b", 1.0)), "other parameters train: b"),
    "other shapes": (run(small("w", 1.0)), run(small("w", 1.0, 1.0)), "w has another shape"),
    "another optimizer": (run(small("w", 1.0)), run(small("w", 1.0), key="1 Adam"), "other optimizers stepped"),
    "no step here": (run(small("w", 1.0)), ProcessReport(pid=2), "no optimizer step was seen in this run"),
    "no step there": (ProcessReport(pid=2), run(small("w", 1.0)), "no optimizer step was seen in the other run"),
}


@pytest.mark.parametrize(("meant", "now"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_different(meant: ProcessReport, now: ProcessReport) -> None:
    """What differs is said."""
    found = compare_runs("report", [meant], [now])
    assert found.verdict == "different"
    assert found.reasons


@pytest.mark.parametrize(("meant", "now", "says"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_not_comparable(meant: ProcessReport, now: ProcessReport, says: str) -> None:
    """What has no counterpart is not called different."""
    found = compare_runs("report", [meant], [now])
    assert (found.verdict, found.compared) == ("unknown", 0)
    assert found.reasons[0].startswith(says)


@pytest.mark.parametrize(("meant", "now"), SAME.values(), ids=SAME.keys())
def test_the_same(meant: ProcessReport, now: ProcessReport) -> None:
    """Rounding is no difference."""
    assert (compare_runs("report", [meant], [now]).verdict, compare_runs("report", [meant], [now]).reasons) == (
        "same",
        (),
    )


def test_rank_by_rank() -> None:
    """Ranks are paired by their number whatever the order of processes, and the differing one is named."""
    meant = [run(small("w", 1.0), rank="0"), run(small("w", 2.0), rank="1")]
    now = [run(small("w", 3.0), rank="1"), run(small("w", 1.0), rank="0")]
    found = compare_runs("report", meant, now)
    assert [(one.rank, one.norm, one.norm_meant) for one in found.worst] == [("1", 3.0, 2.0)]
    assert compare_runs("report", meant, now[:1]).reasons == ("1 processes trained, and 2 in the other run",)


def test_the_worst_come_first() -> None:
    """Ten are shown, the greatest difference first; what is not a number is greater than any."""
    meant = run(*(small(f"w{index}", 1.0) for index in range(12)))
    now = run(*(small(f"w{index}", 2.0 + index) for index in range(11)), small("w11", NAN))
    found = compare_runs("report", [meant], [now])
    assert (found.differing, len(found.worst)) == (12, 10)
    assert [one.name for one in found.worst[:3]] == ["w11", "w10", "w9"]


def test_what_an_edit_changed_of_what_trained() -> None:
    """A parameter that trained before counts once its gradient is another; one that gets its first gradient does not."""
    before = [run(small("trained", 1.0), NONE)]
    fed = small("w", 0.5, 0.5)
    assert changed_of_trained(before, [run(small("trained", 1.0), fed)]) == ()
    assert [one.name for one in changed_of_trained(before, [run(small("trained", 2.0), fed)])] == ["trained"]
    assert [one.name for one in changed_of_trained(before, [run(small("trained", NAN), fed)])] == ["trained"]
    assert changed_of_trained(before, [run(small("other", 2.0))]) == ()
    assert changed_of_trained([], [run(small("trained", 2.0))]) == ()
