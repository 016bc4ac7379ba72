"""Schedules of optimizers that never step, as lines of an incident that an edit can follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from explainer.model.incident import Incident
from explainer.model.trace import IDLE, SCHEDULED, STEPPING, STEPPING_LATER, TracedLine
from explainer.model.verification import IdleSchedule, Place, ProcessReport


def with_idle_schedules(incidents: list[Incident], processes: Sequence[ProcessReport]) -> list[Incident]:
    """What was printed, with the lines that made the first such schedule and the two optimizers; the ranks of a run see the same."""
    found = next((one for process in processes for one in process.idle_schedules), None)
    if found is None:
        return incidents
    lines = tuple(_lines(found))
    return [replace(one, traced=(*one.traced, *lines)) for one in incidents]


def _lines(found: IdleSchedule) -> Iterator[TracedLine]:
    way = STEPPING_LATER if found.is_later else STEPPING
    yield from (
        _line(SCHEDULED, found.schedule, one, "makes the schedule of an optimizer that never steps")
        for one in found.made_by
    )
    yield _line(IDLE, found.optimizer, found.idle, "makes an optimizer that never steps")
    yield from (_line(way, found.stepping, one, "makes the optimizer that trains") for one in found.stepping_by)


def _line(kind: str, operation: str, place: Place, says: str) -> TracedLine:
    return TracedLine(
        kind=kind, operation=operation, file=place.file or "", line=place.line or 0, function=place.function, says=says
    )
