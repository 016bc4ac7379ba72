"""One object to its rows: read to its end, each failure explained as `gradfix explain` does. Both engines call this."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from explainer.catalog.bundle import load_catalog
from explainer.catalog.catalog import Catalog
from explainer.errors import UnreadableInput
from explainer.fleet.clock import Clock
from explainer.fleet.remote import describe
from explainer.fleet.row import EMPTY, EXPLAINED, KILLED, NO_FAILURE, UNKNOWN, UNREADABLE, Row
from explainer.fleet.source import Source
from explainer.fleet.stream import BLOCK, open_source
from explainer.fleet.template import template_of
from explainer.ingest.encoding import decode
from explainer.ingest.notebook import read_notebook
from explainer.ingest.source import MAX_NOTEBOOK, LogReader, Readable
from explainer.match.field import operation_of
from explainer.model.finding import Finding
from explainer.model.incident import ExceptionRecord, Frame, Incident
from explainer.model.report import Report
from explainer.render.mask import mask_text
from explainer.render.terminal import main_exception
from explainer.workflow import explain_incident

MAX_MESSAGE = 2000
MAX_SHAPES = 6
_OPERATIONS = ("op", "operation", "operator", "kernel", "function")
_SHAPE = re.compile(r"\[\d+(?:, ?\d+)*\]|\(\d+(?:, ?\d+)+,?\)|\b\d+(?:x\d+)+\b")
_ENDED_BY_ITSELF = frozenset(("KeyboardInterrupt", "SystemExit"))


@dataclass(frozen=True, slots=True)
class _Read:
    """What one object held; `fault` says why it was not read to its end."""

    incidents: tuple[Incident, ...]
    clock: Clock
    fault: str | None = None


@lru_cache(maxsize=4)
def catalog_of(knowledge: str | None) -> Catalog:
    """The rules, loaded once a process."""
    return load_catalog(knowledge)


def explain_source(source: Source, knowledge: str | None) -> tuple[Row, ...]:
    """The rows of an object, at least one, whatever it holds; the same wherever and whenever it is read.

    Raises:
        RuleError: the rules in the folder `knowledge` cannot be used.
    """
    catalog = catalog_of(knowledge)
    if source.fault is not None:
        return (status_row(source, *source.fault),)
    try:
        read = _read(source)
        rows = tuple(_rows(source, read, catalog))
    except _Blank:
        return (status_row(source, EMPTY, None),)
    except UnreadableInput as error:
        return (status_row(source, UNREADABLE, str(error).removeprefix(f"{source.address}: ")),)
    except Exception as error:  # noqa: BLE001 - one object of a million: its row says what was wrong with it
        return (status_row(source, UNREADABLE, describe(error)),)
    return rows


def killed_row(source: Source) -> Row:
    """The row of an object whose reader died twice."""
    return status_row(source, KILLED, "the process that read it died, also at a second try")


def status_row(source: Source, status: str, detail: str | None) -> Row:
    """A row that says what became of an object without a failure."""
    return Row(
        job=mask_text(source.job),
        file=mask_text(source.address),
        status=status,
        time=source.changed,
        time_from="object" if source.changed else None,
        detail=mask_text(detail) if detail else None,
    )


class _Blank(Exception):
    """The object holds nothing but white space."""


def _read(source: Source) -> _Read:
    clock = Clock()
    with open_source(source) as stream:
        head = b""
        if ".ipynb" in source.address[-16:]:
            head = _read_up_to(stream, MAX_NOTEBOOK + 1)
            if len(head) <= MAX_NOTEBOOK:
                return _Read(tuple(_notebook(head, source.address)), clock)
        reader = LogReader(source.address)
        fault, is_blank = None, True
        for chunk in _chunks(stream, head):
            if isinstance(chunk, str):
                fault = chunk
                break
            is_blank = is_blank and not chunk.strip()
            reader.feed(chunk)
            clock.feed(chunk)
    if is_blank:
        if fault is not None:
            raise UnreadableInput(fault)
        raise _Blank
    return _Read(tuple(reader.close()), clock, fault and f"not read to its end: {fault}")


def _read_up_to(stream: Readable, size: int) -> bytes:
    parts, left = [], size
    while left > 0 and (chunk := stream.read1(min(BLOCK, left))):
        parts.append(chunk)
        left -= len(chunk)
    return b"".join(parts)


def _notebook(data: bytes, name: str) -> Iterator[Incident]:
    if not data.strip():
        raise _Blank
    return read_notebook(decode(data), name)


def _chunks(stream: Readable, head: bytes) -> Iterator[bytes | str]:
    """The pieces of a stream; where it breaks (a cut gzip of a killed job), a last one says why."""
    if head:
        yield head
    while True:
        try:
            chunk = stream.read1(BLOCK)
        except Exception as error:  # noqa: BLE001 - zlib, zstandard and the stores' clients raise what they like
            yield describe(error)
            return
        if not chunk:
            return
        yield chunk


def _rows(source: Source, read: _Read, catalog: Catalog) -> Iterator[Row]:
    failures = 0
    for incident in read.incidents:
        report = explain_incident(incident, None, catalog)
        if not report.findings and not _has_failed(incident):
            continue
        failures += 1
        yield _row(source, report, failures, read)
    if not failures:
        row = status_row(source, NO_FAILURE, read.fault)
        time = read.clock.time_of(None)
        yield row if time is None else _at(row, time)


def _at(row: Row, time: str) -> Row:
    from dataclasses import replace

    return replace(row, time=time, time_from="log")


def _has_failed(incident: Incident) -> bool:
    """Whether an incident without a finding is a failure: an exception that is no interruption, or an exit status."""
    named = [record.type.rpartition(".")[2] for record in incident.exceptions]
    if named:
        return not set(named) <= _ENDED_BY_ITSELF
    code = incident.fact("exit_code")
    return code is not None and code.value != "0"


def _row(source: Source, report: Report, number: int, read: _Read) -> Row:
    incident = report.incident
    finding = report.findings[0] if report.findings else None
    record = main_exception(incident)
    message = _message(incident, record)
    logged = read.clock.time_of(next((one.log_line for one in incident.exceptions if one.log_line), None))
    time = logged or source.changed
    place = _guilty(finding, record)
    return Row(
        job=mask_text(source.job),
        file=mask_text(source.address),
        failure=number,
        status=EXPLAINED if finding else UNKNOWN,
        rank=incident.rank,
        time=time,
        time_from="log" if logged else ("object" if time else None),
        cause=finding.cause if finding else None,
        kind=finding.kind if finding else None,
        confidence=finding.confidence if finding else None,
        score=round(finding.score, 4) if finding else None,
        guilty_file=mask_text(place[0]) if place else None,
        guilty_line=place[1] if place else None,
        exception=record.type if record and record.type else None,
        message=mask_text(message)[:MAX_MESSAGE],
        template=template_of(mask_text(message)),
        op=_operation(incident, finding),
        shapes=_shapes(message, finding),
        versions=_versions(incident),
        gpu=fact.value if (fact := incident.fact("gpu")) else None,
        fingerprint=report.fingerprint,
        detail=read.fault,
    )


def _message(incident: Incident, record: ExceptionRecord | None) -> str:
    if record is not None:
        return record.message if record.type else "(a traceback that is cut before its last line)"
    if (code := incident.fact("exit_code")) is not None and code.value != "0":
        return f"exit status {code.value}"
    return incident.warnings[-1].message if incident.warnings else ""


def _guilty(finding: Finding | None, record: ExceptionRecord | None) -> tuple[str, int | None] | None:
    if finding is not None and finding.culprits:
        return finding.culprits[0].file, finding.culprits[0].line
    frames: tuple[Frame, ...] = record.frames if record is not None else ()
    own = next((frame for frame in reversed(frames) if frame.library is None), None)
    return (own.file, own.line) if own else None


def _operation(incident: Incident, finding: Finding | None) -> str | None:
    fields = dict(finding.fields) if finding else {}
    named = next((fields[name] for name in _OPERATIONS if fields.get(name)), None)
    if named is None and incident.anomaly_node:
        return operation_of(incident.anomaly_node)
    return named


def _shapes(message: str, finding: Finding | None) -> tuple[str, ...]:
    """The shapes that the message names, as it writes them; those of the finding first."""
    fields = finding.fields if finding else ()
    named = [value for name, value in fields if name.endswith("shape")]
    found = [*named, *(match[0] for match in _SHAPE.finditer(message[:MAX_MESSAGE]))]
    plain = ("x".join(re.findall(r"\d+", one)) or one for one in found)
    return tuple(dict.fromkeys(plain))[:MAX_SHAPES]


def _versions(incident: Incident) -> tuple[tuple[str, str], ...]:
    stated = (
        (fact.name.removeprefix("version:"), fact.value) for fact in incident.facts if fact.name[:8] == "version:"
    )
    return tuple(sorted(dict(stated).items()))
