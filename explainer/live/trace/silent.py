"""What a traced run that raised nothing has done wrong all the same, told as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .account import MAX_TOLD, operation_told
from .place import describe

if TYPE_CHECKING:
    from .tracer import Tracer


def _departures(tracer: Tracer) -> list[dict[str, Any]] | None:
    found = tracer.departures.told()
    if found is None:
        return None
    return [{**operation_told(one), "off": describe(one.off) if one.off else None} for one in found]


def silent(tracer: Tracer) -> dict[str, Any]:
    """What each part of a tracer that looks for silent faults has seen, by kind."""
    return {
        "crossed": tracer.crossed.told(),
        "combined": tracer.combined.told(),
        "silenced": tracer.silenced.told(),
        "drawn": [operation_told(one) for one in tracer.sampled_terms.lines()[:MAX_TOLD]],
        "dead_terms": [
            {
                **operation_told(one),
                "off": describe(one.off) if one.off else None,
                "sum": operation_told(total) if total is not None else None,
            }
            for one, total in tracer.dead_terms.lines()[:MAX_TOLD]
        ],
        "read_terms": [
            {**operation_told(read), "sum": operation_told(total)} for read, total in tracer.dead_terms.guessed()
        ],
        "data_terms": [
            {**operation_told(one), "parameters": count} for one, count in tracer.data_terms.told()[:MAX_TOLD]
        ],
        "cut_states": [operation_told(one) for one in tracer.recurrence.told()],
        "departures": _departures(tracer),
        "starved": tracer.account.starved(tracer.starved),
        "cleared": [
            {"operation": "zero_grad", **describe(place), "count": count} for place, count in tracer.cleared.told()
        ],
        "redrawn": [{"operation": "checkpoint", **describe(place)} for place in tracer.replays.redrawn()],
        "expanded": tracer.account.expanded(tracer.expanded.told()),
        "saved_constants": tracer.saved_constants.told(),
        "lost_leaves": [{**operation_told(made), "read": describe(place)} for made, place in tracer.lost_leaves.told()],
        "counted": [
            {"operation": "backward", **describe(early), "again": describe(late)}
            for early, late in tracer.counted.told()
        ],
    }
