"""A live exception object as an incident: its chain, its groups, its notes and its frames.

Nothing of the user's is executed but `str()` of the exceptions themselves.
"""

from __future__ import annotations

import linecache
import os
import traceback
from types import TracebackType

from explainer.ingest.library import own
from explainer.model.incident import ExceptionRecord, Frame, Incident

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_WRAPPERS = tuple(os.path.join(_HERE, name, "") for name in ("live", "integrations"))
_TRACEBACK = "Traceback (most recent call last):"
_MAX_RECORDS = 60
_MAX_FRAMES = 2000


def read_exception_object(error: BaseException) -> Incident:
    """The incident of a live exception: origin first, group members after their group."""
    records: list[ExceptionRecord] = []
    _add(records, error, link=None, parent=None, seen=set())
    if any(_TRACEBACK in one.message for one in records):
        told = _of_another_process(error)
        if told is not None:
            return told
    forward = _dynamo_frames(records)
    return Incident(exceptions=tuple(records), forward_frames=forward)


def _of_another_process(error: BaseException) -> Incident | None:
    """The incident of a failure that a worker or a spawned process has sent as text, which the exception's message is; None for none."""
    from explainer.ingest.text import read_text

    told = next(iter(read_text("".join(traceback.format_exception(error)))), None)
    return (
        told if told is not None and len(told.exceptions) > 1 and any(one.frames for one in told.exceptions) else None
    )


def _add(
    records: list[ExceptionRecord], error: BaseException, link: str | None, parent: int | None, seen: set[int]
) -> None:
    if id(error) in seen or len(seen) >= _MAX_RECORDS:
        return
    seen.add(id(error))
    if error.__cause__ is not None:
        _add(records, error.__cause__, link, parent, seen)
        link = "direct_cause"
    elif error.__context__ is not None and not error.__suppress_context__:
        _add(records, error.__context__, link, parent, seen)
        link = "during_handling"
    elif parent is not None:
        link = link or "group_member"
    index = len(records)
    records.append(
        ExceptionRecord(
            type=_type_name(error),
            message=_text(error),
            notes=_notes(error),
            frames=_frames(error.__traceback__),
            link=link,
            parent=parent,
        )
    )
    for member in _members(error):
        _add(records, member, None, index, seen)


def _type_name(error: BaseException) -> str:
    kind = type(error)
    return (
        kind.__qualname__ if kind.__module__ in ("__main__", "builtins") else f"{kind.__module__}.{kind.__qualname__}"
    )


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001 - a user's own __str__ may raise anything
        return f"<str() failed: {type(failure).__name__}>"


def _notes(error: BaseException) -> tuple[str, ...]:
    notes = getattr(error, "__notes__", None)
    return tuple(note for note in notes if isinstance(note, str)) if isinstance(notes, (list, tuple)) else ()


def _members(error: BaseException) -> tuple[BaseException, ...]:
    """The members of an exception group, the standard library's or its backport's."""
    members = getattr(error, "exceptions", ())
    is_group = any(kind.__name__ == "BaseExceptionGroup" for kind in type(error).__mro__)
    return tuple(one for one in members if isinstance(one, BaseException)) if is_group else ()


def _frames(tb: TracebackType | None) -> tuple[Frame, ...]:
    """The frames but for our own wrappers, which in a checkout lie in no installed package."""
    found = traceback.extract_tb(tb, limit=_MAX_FRAMES)
    return tuple(own(_frame(one)) for one in found if not one.filename.startswith(_WRAPPERS))


def _frame(summary: traceback.FrameSummary) -> Frame:
    line = summary.lineno or 0
    code = linecache.getline(summary.filename, line).strip() or None
    return Frame(
        file=summary.filename, line=summary.lineno, function=summary.name, code=code, mark=_mark(summary, line, code)
    )


def _mark(summary: traceback.FrameSummary, line: int, code: str | None) -> tuple[int, int] | None:
    """The columns that Python 3.11 and later know of the failing expression, within the stripped line."""
    start, end = getattr(summary, "colno", None), getattr(summary, "end_colno", None)
    if code is None or start is None or end is None:
        return None
    raw = linecache.getline(summary.filename, line)
    if not raw.isascii():  # the columns count bytes
        return None
    indent = len(raw) - len(raw.lstrip())
    is_one_line = getattr(summary, "end_lineno", line) == line
    stop = end - indent if is_one_line else len(code)
    begin = start - indent
    return (begin, stop) if 0 <= begin < stop <= len(code) and (begin, stop) != (0, len(code)) else None


def _dynamo_frames(records: list[ExceptionRecord]) -> tuple[Frame, ...]:
    from explainer.ingest.assembly import user_code_frames

    return next((frames for record in records if (frames := user_code_frames(record))), ())
