"""Holds the first steps of two runs against each other: losses, and each parameter's gradient, with a tolerance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from explainer.model.verification import (
    COMPILE,
    DIFFERENT,
    SAME,
    UNKNOWN,
    Comparison,
    FirstStep,
    Gradient,
    GradientDifference,
    ProcessReport,
)

RTOL = 1e-4
# What rounding in the least precise type that a run computes in may do to a gradient, relative to its largest value.
_BY_PRECISION = {"float16": 5e-3, "bfloat16": 3e-2, "tf32": 2e-3, "compiled": 1e-3}
FLOOR = 1e-2  # a gradient that is zero but for rounding is measured against the largest one
LOSS_FLOOR = 1e-8
MAX_WORST = 10

Pair = tuple[ProcessReport, ProcessReport]


class _NotComparable(Exception):
    """Two runs that have no gradients in common; says why."""


@dataclass(frozen=True, slots=True)
class _Scale:
    """The largest value and the largest norm of a first step's gradients."""

    value: float
    norm: float


def compare_runs(against: str, meant: Sequence[ProcessReport], now: Sequence[ProcessReport]) -> Comparison:
    """The comparison of the run `now` with the one whose gradients are `meant`."""
    try:
        pairs = _pairs(meant, now)
        losses = [one for pair in pairs for one in _losses(*pair)]
        found = [one for pair in pairs for one in _differences(*pair, is_alone=len(pairs) == 1)]
    except _NotComparable as reason:
        return Comparison(against=against, verdict=UNKNOWN, reasons=(str(reason),))
    tolerance = max(tolerance_of(one) for pair in pairs for one in pair)
    beyond = sorted((one for one in found if not one.error <= tolerance), key=lambda one: -_size(one.error))
    reasons = []
    if any(not _is_near(*pair, tolerance) for pair in losses):
        first = next(pair for pair in losses if not _is_near(*pair, tolerance))
        reasons.append(f"the loss of the first step is {first[1]:.6g}, and was {first[0]:.6g}")
    if beyond:
        reasons.append(f"{len(beyond)} of {len(found)} first gradients differ: {_told(beyond)}")
    return Comparison(
        against=against, verdict=DIFFERENT if reasons else SAME, reasons=tuple(reasons), compared=len(found),
        differing=len(beyond), tolerance=tolerance, worst=tuple(beyond[:MAX_WORST]), loss=losses[0] if losses else (None, None),
        memory=(_memory(one[0] for one in pairs), _memory(one[1] for one in pairs)),
        step_seconds=(_slowest(one[0] for one in pairs), _slowest(one[1] for one in pairs)),
    )  # fmt: skip


def changed_of_trained(before: Sequence[ProcessReport], now: Sequence[ProcessReport]) -> tuple[GradientDifference, ...]:
    """First gradients that are others than before, of parameters that had one there; () where the runs cannot be compared.

    Optimizers that made no step before are left out.
    """
    try:
        pairs = [(one, _without_new(one, other)) for one, other in _pairs(before, now)]
        found = [one for pair in pairs for one in _differences(*pair, is_alone=len(pairs) == 1)]
    except _NotComparable:
        return ()
    tolerance = max(tolerance_of(one) for pair in pairs for one in pair)
    return tuple(one for one in found if one.norm_meant and not one.error <= tolerance)


def _without_new(before: ProcessReport, now: ProcessReport) -> ProcessReport:
    known = {one.optimizer.partition(" ")[0] for one in before.first}
    return replace(now, first=tuple(one for one in now.first if one.optimizer.partition(" ")[0] in known))


def tolerance_of(process: ProcessReport) -> float:
    """How far a gradient may differ by rounding alone, by the least precise type that the run computes in."""
    used = {*process.dtypes, *(one.rpartition(" ")[2] for one in process.autocast)}
    used |= {"tf32"} if process.machine is not None and process.machine.tf32 else set()
    used |= {"compiled"} if COMPILE in process.uses else set()
    return max([RTOL, *(_BY_PRECISION[one] for one in used if one in _BY_PRECISION)])


def _pairs(meant: Sequence[ProcessReport], now: Sequence[ProcessReport]) -> list[Pair]:
    """The processes that stepped, rank by rank; in the order of their numbers where they have no rank."""
    ours, theirs = [one for one in now if one.first], [one for one in meant if one.first]
    if not ours or not theirs:
        raise _NotComparable("no optimizer step was seen in " + ("this run" if theirs else "the other run"))
    by_rank = {one.rank: one for one in theirs}
    if len(by_rank) == len(theirs) and set(by_rank) == {one.rank for one in ours} and len(ours) == len(theirs):
        return [(by_rank[one.rank], one) for one in ours]
    if len(ours) != len(theirs):
        raise _NotComparable(f"{len(ours)} processes trained, and {len(theirs)} in the other run")
    return list(zip(theirs, ours, strict=True))


def _steps(meant: ProcessReport, now: ProcessReport) -> Iterator[tuple[FirstStep, FirstStep]]:
    """The first steps of the same optimizers, by their place in the order."""
    theirs = {one.optimizer.partition(" ")[0]: one for one in meant.first}
    ours = {one.optimizer.partition(" ")[0]: one for one in now.first}
    if set(theirs) != set(ours):
        raise _NotComparable(f"other optimizers stepped: {len(ours)}, and {len(theirs)} in the other run")
    for key, step in theirs.items():
        yield step, ours[key]


def _losses(meant: ProcessReport, now: ProcessReport) -> Iterator[tuple[float, float]]:
    """The losses of the first steps; where they were sent backward in another number of calls only the gradients count."""
    for theirs, ours in _steps(meant, now):
        if len(theirs.losses) == len(ours.losses):
            yield from zip(theirs.losses, ours.losses, strict=True)


def _differences(meant: ProcessReport, now: ProcessReport, *, is_alone: bool) -> Iterator[GradientDifference]:
    for theirs, ours in _steps(meant, now):
        scale = _Scale(
            max((one.largest for one in theirs.gradients), default=0.0),
            max((one.norm for one in theirs.gradients), default=0.0),
        )
        for want, have in _matched(theirs.gradients, ours.gradients):
            if want.why_not is None and have.why_not is None:
                yield GradientDifference(
                    name=have.name, error=_error(want, have, scale), norm=have.norm, norm_meant=want.norm,
                    rank=None if is_alone else now.rank,
                )  # fmt: skip


def _matched(meant: Sequence[Gradient], now: Sequence[Gradient]) -> list[tuple[Gradient, Gradient]]:
    """The same parameters: by name, else by place where the shapes agree, as under another wrapper."""
    named = {one.name: one for one in meant}
    if set(named) == {one.name for one in now} and len(named) == len(meant) == len(now):
        pairs = [(named[one.name], one) for one in now]
    else:
        pairs = list(zip(meant, now, strict=False))
        if len(meant) != len(now) or any(want.shape != have.shape for want, have in pairs):
            other = sorted(set(named) ^ {one.name for one in now})
            raise _NotComparable(f"other parameters train: {', '.join(other[:3])}{', ...' if len(other) > 3 else ''}")
    changed = next((have for want, have in pairs if want.shape != have.shape), None)
    if changed is not None:
        raise _NotComparable(f"{changed.name} has another shape")
    return pairs


def _error(want: Gradient, have: Gradient, scale: _Scale) -> float:
    """By how much a gradient differs, relative to its largest value or, of one known by projections, to its norm."""
    values = max(want.largest, FLOOR * scale.value)
    norm = max(want.norm, FLOOR * scale.norm)
    if len(want.values) == len(have.values) and (want.values or not (want.projections or have.projections)):
        apart = [abs(one - other) for one, other in zip(want.values, have.values, strict=True)]
        return _ratio(max(apart, default=0.0, key=_size), values)
    if not have.given or not want.given:
        return _ratio(max(want.largest, have.largest, key=_size), values)
    errors = [_ratio(abs(want.norm - have.norm), norm), _ratio(abs(want.largest - have.largest), values)]
    if want.projections and len(want.projections) == len(have.projections):
        square = sum((one - other) ** 2 for one, other in zip(want.projections, have.projections, strict=True))
        errors.append(_ratio(math.sqrt(square / len(want.projections)), norm))
    return max(errors, key=_size)


def _ratio(apart: float, size: float) -> float:
    return apart / size if size else (0.0 if apart == 0 else math.inf)


def _size(value: float) -> float:
    """A number to sort by: what is not a number is largest."""
    return math.inf if math.isnan(value) else value


def _is_near(one: float, other: float, tolerance: float) -> bool:
    return abs(one - other) <= tolerance * max(abs(one), LOSS_FLOOR)


def _told(differences: Sequence[GradientDifference]) -> str:
    told = [f"{one.name} (norm {one.norm:.4g}, meant {one.norm_meant:.4g})" for one in differences[:3]]
    return ", ".join(told) + (f" and {len(differences) - 3} more" if len(differences) > 3 else "")


def _memory(processes: Iterator[ProcessReport]) -> int | None:
    """The peak of all processes together."""
    found = [one.machine.memory for one in processes if one.machine is not None and one.machine.memory is not None]
    return sum(found) if found else None


def _slowest(processes: Iterator[ProcessReport]) -> float | None:
    return max((one.step_seconds for one in processes if one.step_seconds is not None), default=None)
