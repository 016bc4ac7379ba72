"""Blocks to incidents: what belongs to one failure, in the order in which it happened, without repetitions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from explainer.ingest.block import Block
from explainer.ingest.fact import read_facts
from explainer.ingest.library import own
from explainer.ingest.traceback import read_exception
from explainer.ingest.warning import Anomaly
from explainer.model.incident import (
    ExceptionRecord,
    Fact,
    Frame,
    Incident,
    LogLine,
    MetricRow,
    WarningRecord,
)

MAX_EXCEPTIONS = 60
MAX_RECORDS = 200
MAX_LOG_LINES = 1500


@dataclass(slots=True)
class _Draft:
    """An incident while its blocks come in."""

    exceptions: list[ExceptionRecord] = field(default_factory=list)
    anomalies: list[Anomaly] = field(default_factory=list)
    warnings: list[WarningRecord] = field(default_factory=list)
    metrics: list[MetricRow] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    log: list[LogLine] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    said_by: dict[object, list[int]] = field(default_factory=dict)
    keys: dict[int, object] = field(default_factory=dict)
    seen: set[object] = field(default_factory=set)
    has_failed: bool = False
    has_progressed: bool = False


def assemble(blocks: Iterable[Block], source: str | None = None) -> Iterator[Incident]:
    """The incidents of one log, in its order; one without any exception where there is none.

    A second failure is an incident of its own only where training went on between the two: all else after a failure is
    its cascade, its other ranks or its teardown.
    """
    draft = _Draft()
    for block in sorted(blocks, key=lambda block: block.line):
        if _begins_another(draft, block):
            yield _finish(draft, source)
            draft = _Draft(facts=list(draft.facts), warnings=list(draft.warnings))
        _add(draft, block)
    yield _finish(draft, source)


def _begins_another(draft: _Draft, block: Block) -> bool:
    if not draft.has_progressed or not isinstance(block.value, tuple) or isinstance(block.value, Anomaly):
        return False
    records: Sequence[ExceptionRecord] = block.value
    return any(record.from_traceback and record.is_complete for record in records)


def _add(draft: _Draft, block: Block) -> None:
    value = block.value
    if isinstance(value, Anomaly):
        draft.anomalies.append(value)
    elif isinstance(value, tuple):
        _add_exceptions(draft, value, block.rank)
    elif isinstance(value, WarningRecord):
        _add_once(draft, draft.warnings, value, ("warning", value.category, _template(value.message)))
    elif isinstance(value, MetricRow):
        draft.has_progressed = draft.has_failed
        draft.metrics.append(value)
    elif isinstance(value, Fact):
        _add_once(draft, draft.facts, value, ("fact", value.name, value.value))
    else:
        draft.log.append(value)
        if len(draft.log) > MAX_LOG_LINES:
            del draft.log[MAX_LOG_LINES // 2]


def _add_once(draft: _Draft, records: list, record: object, key: object) -> None:  # type: ignore[type-arg]
    if key not in draft.seen and len(records) < MAX_RECORDS:
        draft.seen.add(key)
        records.append(record)


def _add_exceptions(draft: _Draft, records: Sequence[ExceptionRecord], rank: int | None) -> None:
    if rank is not None and rank not in draft.ranks:
        draft.ranks.append(rank)
    key = ("exceptions", tuple(_fingerprint(record) for record in records))
    if rank is not None and rank not in draft.said_by.setdefault(key, []):
        draft.said_by[key].append(rank)
    if key in draft.seen or _is_echo(draft, records):
        return
    draft.seen.add(key)
    draft.has_failed = draft.has_failed or any(record.from_traceback and record.type for record in records)
    draft.has_progressed = False
    if len(draft.exceptions) + len(records) > MAX_EXCEPTIONS:
        return
    draft.keys.update({record.log_line: key for record in records if record.log_line is not None})
    offset = len(draft.exceptions)
    moved = [replace(record, parent=None if record.parent is None else record.parent + offset) for record in records]
    if draft.exceptions and _wraps(draft.exceptions[-1]) and moved[0].log_line is not None:
        outer = draft.exceptions.pop()
        draft.exceptions.extend([*records, replace(outer, link="reraised")])
        return
    draft.exceptions.extend(moved)


def _is_echo(draft: _Draft, records: Sequence[ExceptionRecord]) -> bool:
    """Whether a bare line only repeats what a traceback said."""
    if len(records) != 1 or records[0].from_traceback or records[0].frames:
        return False
    words = _template(records[0].message.partition("\n")[0])
    return any(
        old.type == records[0].type and _template(old.message.partition("\n")[0]) == words for old in draft.exceptions
    )


@cache
def _wrapper() -> re.Pattern[str]:
    return re.compile(r"Caught \w+ in |[\s-]*Process \d+ terminated with the following error|ray::")


def _wraps(record: ExceptionRecord) -> bool:
    """Whether an exception only carries another process's traceback, which is printed after it."""
    return bool(_wrapper().match(record.message.strip()))


def _fingerprint(record: ExceptionRecord) -> tuple[object, ...]:
    last = record.frames[-1] if record.frames else None
    return record.type, _template(record.message), last and (last.file, last.line, last.function)


def _template(message: str) -> str:
    """A message without its numbers, so that two ranks' words are the same."""
    return re.sub(r"0x[0-9a-f]+|\d+", "#", message[:400])


def _finish(draft: _Draft, source: str | None) -> Incident:
    draft.exceptions = [_with_ranks(draft, record) for record in draft.exceptions]
    forward, exceptions = _forward_frames(draft)
    induced = next((anomaly for anomaly in draft.anomalies if anomaly.is_induced), None)
    direct = next((anomaly for anomaly in draft.anomalies if not anomaly.is_induced), None)
    failed = next((fact.value for fact in draft.facts if fact.name == "failed_rank"), None)
    stated = [*_facts_of_messages(exceptions), *_facts_of_paths(exceptions, forward), *_facts_of_ranks(draft)]
    return Incident(
        exceptions=tuple(exceptions),
        forward_frames=tuple(forward),
        induced_frames=induced.frames if induced else (),
        anomaly_node=direct.node if direct else None,
        induced_node=induced.node if induced else None,
        warnings=tuple(draft.warnings),
        metrics=_thinned(draft.metrics),
        facts=(*draft.facts, *stated),
        log=tuple(draft.log),
        rank=int(failed) if failed else (draft.ranks[0] if draft.ranks else None),
        ranks=tuple(sorted(draft.ranks)),
        source=source,
        is_cut=any(not record.is_complete for record in exceptions),
    )


def _with_ranks(draft: _Draft, record: ExceptionRecord) -> ExceptionRecord:
    """A record with all ranks that printed the same chain."""
    ranks = draft.said_by.get(draft.keys.get(record.log_line, None)) if record.log_line is not None else None
    return replace(record, ranks=tuple(ranks)) if ranks else record


def _forward_frames(draft: _Draft) -> tuple[list[Frame], list[ExceptionRecord]]:
    """The forward stack, from anomaly mode's report, from what is left of one, or from Dynamo's "from user code"."""
    for anomaly in draft.anomalies:
        if anomaly.frames and not anomaly.is_induced:
            return list(anomaly.frames), draft.exceptions
    for at, record in enumerate(draft.exceptions[:-1]):
        following = draft.exceptions[at + 1]
        if not record.type and ("returned nan values" in following.message or "inplace operation" in following.message):
            return list(record.frames), draft.exceptions[:at] + draft.exceptions[at + 1 :]
    for record in draft.exceptions:
        frames = user_code_frames(record)
        if frames:
            return list(frames), draft.exceptions
    return [], draft.exceptions


def user_code_frames(record: ExceptionRecord) -> tuple[Frame, ...]:
    """The stack of the user's code that a Dynamo error carries in its message, under "from user code:"."""
    _, mark, rest = record.message.partition("from user code:\n")
    read = read_exception(rest.split("\n"), 0, lambda _: False) if mark else None
    return tuple(own(frame) for frame in read.record.frames) if read else ()


def _facts_of_messages(exceptions: Sequence[ExceptionRecord]) -> Iterator[Fact]:
    """A launcher's table stands in its exception's message."""
    for record in exceptions:
        if "ChildFailedError" in record.type:
            for text in record.message.split("\n"):
                yield from read_facts(text, record.log_line)


def _facts_of_paths(exceptions: Sequence[ExceptionRecord], forward: Sequence[Frame]) -> Iterator[Fact]:
    """Versions that paths tell: the interpreter's, and a library's where an egg or a store path names it."""
    versions: dict[str, str] = {}
    for frame in [*(frame for record in exceptions for frame in record.frames), *forward]:
        found = re.search(r"python(?P<version>3\.\d+)[/\\]", frame.file)
        if found:
            versions.setdefault("python", found["version"])
        if frame.library and frame.library_version:
            versions.setdefault(frame.library, frame.library_version)
    for name, version in versions.items():
        yield Fact(name=f"version:{name}", value=version)


def _facts_of_ranks(draft: _Draft) -> Iterator[Fact]:
    """How many ranks show, where lines name theirs."""
    if draft.ranks:
        yield Fact(name="ranks", value=str(len(draft.ranks)))


def _thinned(rows: Sequence[MetricRow], keep: int = 60) -> tuple[MetricRow, ...]:
    """The first rows, the last ones, and those at which a value stops being finite."""
    if len(rows) <= 2 * keep:
        return tuple(rows)
    turning = [
        row
        for row, before in zip(rows[keep + 1 : -keep], rows[keep:-keep], strict=False)
        if _is_finite(before) and not _is_finite(row)
    ]
    return (*rows[:keep], *turning[:keep], *rows[-keep:])


def _is_finite(row: MetricRow) -> bool:
    return all(value - value == 0 for _, value in row.values)
