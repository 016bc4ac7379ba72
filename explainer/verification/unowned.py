"""Parameters that train for no optimizer, as lines and facts of an incident."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from explainer.model.incident import Fact, Incident, LogLine
from explainer.model.trace import UNOWNED, TracedLine
from explainer.model.verification import ProcessReport, Unowned

MAX_NAMES = 3
SHARDED = "live_sharded"  # it is there where those parameters are shards
PARTS = "live_parts"  # the fact that is there where a run was seen to train for nobody


def unowned_of(processes: Sequence[ProcessReport]) -> tuple[Unowned, ...]:
    """What any process saw; the ranks of one run see the same.

    Not the adapter that a program puts in the place of the one that trains: that line says more.
    """
    return tuple(dict.fromkeys(one for process in processes for one in process.unowned if not _is_put_in(one, process)))


def _is_put_in(one: Unowned, process: ProcessReport) -> bool:
    adapters = [f".{switched.instead}." for switched in process.switched_adapters]
    return bool(adapters) and all(any(adapter in name for adapter in adapters) for name in one.names)


def with_unowned(incident: Incident, unowned: Sequence[Unowned]) -> Incident:
    """The incident with what was seen, in the words that the rules read, and the line that made the optimizer."""
    lines = tuple(LogLine(text=f"seen in the live program: {said_of(one)}") for one in unowned)
    traced = tuple(
        TracedLine(
            kind=UNOWNED, operation="Optimizer", file=one.file, line=one.line, function=one.function,
            says=f"makes the optimizer, without {_counted(one)} that get gradients", is_guess=True,
        )
        for one in unowned
        if one.file and one.line
    )  # fmt: skip
    first = unowned[0]
    facts = (
        Fact(name=PARTS, value=" ".join(first.children)),
        Fact(name="live_parts_without_optimizer", value=" ".join(first.whole)),
        Fact(name="live_empty_groups", value=str(len(first.empty))),
        *([Fact(name=SHARDED, value=first.model)] if first.is_sharded else []),
    )
    return replace(
        incident,
        log=(*incident.log, *lines),
        traced=(*incident.traced, *traced),
        facts=(*incident.facts, *facts),
    )


def said_of(one: Unowned) -> str:
    """The parameters that no optimizer owns, in words."""
    names = ", ".join(f"`{name}`" for name in one.names[:MAX_NAMES])
    if one.is_plain:
        return f"{names} of {one.model} is a plain tensor that requires grad, no Parameter: it gets gradients, and no optimizer steps it"
    if one.is_lost:
        return f"{names} of {one.model} is computed from a Parameter that no module holds: it gets gradients, and no optimizer steps it"
    more = f" and {one.count - MAX_NAMES} more" if one.count > MAX_NAMES else ""
    empty = f"; group {one.empty[0][0]} of {one.empty[0][1]} is empty" if one.empty else ""
    shards = "; they are shards" if one.is_sharded else ""
    return f"{_counted(one)} get gradients and belong to no optimizer: {', '.join(one.names[:MAX_NAMES])}{more}{empty}{shards}"


def _counted(one: Unowned) -> str:
    return (
        f"{one.count} trainable parameters of {one.model}" if one.count > 1 else f"a trainable parameter of {one.model}"
    )
