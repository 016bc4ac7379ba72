"""`gradfix history`: failures, patches and verifications of a project in the order of their times; forgets them too."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone

from explainer import memory
from explainer.cli.explain import tell_of_memory
from explainer.cli.fix import DONE
from explainer.errors import GradfixError, UsageError
from explainer.model.event import FAILURE, FIX, VERIFICATION, Event
from explainer.model.journal import Record
from explainer.render.record import plain_record
from explainer.render.visible import one_line, visible

_WIDTH = 8  # of the word that says what happened


def run_history(root: str | None, form: str, *, is_all: bool) -> int:
    """Print what happened to a project, or to all, newest last."""
    from explainer.render.json import render_json
    from explainer.transaction import list_damaged
    from explainer.workflow import history

    if form not in ("text", "json"):
        raise UsageError(f"--format {form!r}: it is text or json")
    place = None if is_all else root or os.getcwd()
    records = history(place)
    events = memory.events_of(place) if memory.is_kept() else []
    for path in list_damaged(place):
        print(f"gradfix: {one_line(path, 400)}: this record cannot be read", file=sys.stderr)
    if form == "json":
        plain = {
            "schema": "gradfix.history/1",
            "records": [plain_record(one) for one in records],
            "events": [one._asdict() for one in events],
        }
        sys.stdout.write(render_json(plain))
    else:
        for line in _lines(records, events, is_all=is_all):
            print(line)
    tell_of_memory()
    if not records and not events and form == "text":
        print("gradfix: no patch was applied to this project, and nothing else is remembered of it", file=sys.stderr)
    return DONE


def run_forget(root: str | None, *, is_all: bool) -> int:
    """Forget a project, or everything; patches can be undone all the same.

    Raises:
        GradfixError: the memory cannot be written.
    """
    from explainer.store.memory import MemoryUnusable

    try:
        count = memory.forget(None if is_all else root or os.getcwd())
    except MemoryUnusable as error:
        raise GradfixError(f"the memory cannot be forgotten: {error}") from error
    print(f"forgotten: {count} event{'' if count == 1 else 's'} of {'all projects' if is_all else 'this project'}")
    return DONE


def _lines(records: Sequence[Record], events: Sequence[Event], *, is_all: bool) -> Iterator[str]:
    """Patches as the journal has them, everything else as it is remembered; the same failure over and over as one line."""
    known = {record.id for record in records}
    told = [(record.time, _patch(record, is_all=is_all)) for record in records]
    shown = [
        one for one in events if one.kind in (FAILURE, VERIFICATION) or (one.kind == FIX and one.record not in known)
    ]
    for group in _grouped(shown):
        told.append((group[-1].time, _event(group, is_all=is_all)))  # noqa: PERF401 - one after the other, as the patches
    yield from (line for _, line in sorted(told, key=lambda one: one[0]))


def _grouped(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Events one by one, sightings of one failure that follow each other together."""
    group: list[Event] = []
    for event in events:
        is_same = group and event.kind == group[-1].kind == FAILURE and event.fingerprint == group[-1].fingerprint
        if group and not is_same:
            yield group
            group = []
        group.append(event)
    if group:
        yield group


def _patch(record: Record, *, is_all: bool) -> str:
    where = f"{record.root}: " if is_all else ""
    names = ", ".join(one_line(os.path.relpath(one.file, record.root), 200) for one in record.files)
    text = f"{record.id}  {_when(record.time)}  {record.state:<{_WIDTH}}  {record.cause}  {record.fix}  {where}{names}"
    return visible(f"{text}  ({record.note})" if record.note else text)


def _event(group: Sequence[Event], *, is_all: bool) -> str:
    event = group[-1]
    where = f"{event.project.rpartition('-')[0]}: " if is_all else ""
    if event.kind == FAILURE:
        place = f"{event.file}:{event.line}" if event.file and event.line else event.file or ""
        times = f"  ({len(group)} times)" if len(group) > 1 else ""
        what = f"{event.cause or 'not recognised'}  {event.exception or 'no exception'}  {where}{place}{times}"
        return visible(f"{'-' * 6}  {_when(event.time)}  {'failed':<{_WIDTH}}  {what.rstrip()}")
    word = event.verdict if event.kind == VERIFICATION else "applied"
    what = f"{event.cause or 'the program'}  {event.fix or ''}  {where}".rstrip(" :")
    return visible(f"{event.record or '-' * 6}  {_when(event.time)}  {word:<{_WIDTH}}  {what}")


def _when(moment: float) -> str:
    return datetime.fromtimestamp(moment, timezone.utc).astimezone().strftime("%Y-%m-%d %H:%M")
