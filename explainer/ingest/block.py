"""Cuts the lines of one writer into blocks: tracebacks, warnings, anomaly reports, metrics, facts, plain lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from explainer.ingest.boxed import read_box, starts_box
from explainer.ingest.chain import Chain, read_chain, starts_chain
from explainer.ingest.fact import read_facts
from explainer.ingest.ipython import read_ipython, starts_ipython
from explainer.ingest.metric import read_metrics
from explainer.ingest.prefix import Line
from explainer.ingest.pytest_report import read_pytest, starts_pytest
from explainer.ingest.terminal import is_progress
from explainer.ingest.traceback import Stops, is_frame, named_exception, read_exception, read_message
from explainer.ingest.warning import Anomaly, read_warning, starts_warning
from explainer.model.incident import ExceptionRecord, Fact, LogLine, MetricRow, WarningRecord

Value = tuple[ExceptionRecord, ...] | WarningRecord | Anomaly | MetricRow | Fact | LogLine


class Block(NamedTuple):
    """A piece of a log: what it is, the line it begins on, and the rank that wrote it."""

    value: Value
    line: int
    rank: int | None


@cache
def _other() -> re.Pattern[str]:
    """Lines that are never part of a message: shells, launchers, trackers, other processes."""
    return re.compile(
        r"(?:wandb: |srun: |slurmstepd|\$ |\+\+? \S|Killed$|Aborted|Segmentation fault|make: |Exception in thread |"
        r"Exception ignored in|Process \S+:$|FAILED \S+::|={10,} .* ={10,}$|Epoch \d+|"
        r"In \[\d+\]:|Out\[\d+\]:|INFO |root@|\(\w+\) \S+@|terminate called after|NCCL INFO|"
        r"(?:Sending|Terminating) process \d+|Killing subprocess \d+|Process finished with exit code)"
    )


def read_blocks(lines: Sequence[Line]) -> Iterator[Block]:
    """The blocks of one writer's lines, in their order."""
    texts = [line.text for line in lines]
    index = 0
    while index < len(lines):
        line, end = lines[index], index + 1
        if line.text.strip():
            values, end = _read_at(lines, texts, index)
            for value in values:
                yield Block(value, line.number, line.rank)
        index = max(end, index + 1)


def _read_at(lines: Sequence[Line], texts: Sequence[str], index: int) -> tuple[list[Value], int]:
    """What begins at `index`, and where it ends."""

    def stops(at: int) -> bool:
        return _breaks(lines, texts, index, at)

    chain = _read_exceptions(texts, index, stops)
    if chain:
        return [_numbered(chain, lines[index])], chain.end
    if starts_warning(texts, index):
        read = read_warning(texts, index, lines[index].number, stops)
        found: list[Value] = [read.anomaly] if read.anomaly else []
        return [read.record, *found], read.end
    return _read_line(lines[index]), index + 1


def _read_exceptions(texts: Sequence[str], index: int, stops: Stops) -> Chain | None:
    text = texts[index]
    if starts_chain(texts, index):
        return read_chain(texts, index, stops)
    if text.lstrip()[:1] in ("╭", "│", "┌", "+") and starts_box(texts, index):
        return read_box(texts, index, stops)
    if starts_ipython(texts, index):
        return read_ipython(texts, index, stops)
    if (text[:1] in ("E", ">") or ".py:" in text) and starts_pytest(texts, index):
        return read_pytest(texts, index)
    if "rror" in text or "xception" in text or "nsupported" in text:
        return _read_named(texts, index, stops) or _read_announced(texts, index, stops)
    return None


@cache
def _announced() -> re.Pattern[str]:
    """A debugger's line that names the type alone: "Exception has occurred: RuntimeError", in any language."""
    return re.compile(r"\S[^:]{0,40}: (?P<type>(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))\s*$")


def _read_announced(texts: Sequence[str], index: int, stops: Stops) -> Chain | None:
    """An exception whose type a debugger announces on one line and whose message stands on the next."""
    found = _announced().match(texts[index])
    if found is None or index + 1 >= len(texts) or not texts[index + 1].strip() or stops(index + 1):
        return None
    if starts_chain(texts, index + 1):
        return None
    message, end = read_message(texts, index + 1, texts[index + 1].strip(), lambda at: stops(at) or is_frame(texts[at]))
    frames = read_exception(texts, end, stops) if end < len(texts) and is_frame(texts[end]) else None
    record = ExceptionRecord(type=found["type"], message=message, frames=frames.record.frames if frames else ())
    if frames and frames.record.type:
        record = replace(frames.record, type=frames.record.type)
    return Chain((record,), frames.end if frames else end)


def _read_named(texts: Sequence[str], index: int, stops: Stops) -> Chain | None:
    """An exception shown without traceback."""
    found = named_exception().match(texts[index])
    if found is None:
        return None
    message, end = read_message(texts, index, found["message"] or "", stops)
    return Chain((ExceptionRecord(type=found["type"], message=message, from_traceback=False),), end)


def _numbered(chain: Chain, line: Line) -> tuple[ExceptionRecord, ...]:
    return tuple(replace(record, rank=line.rank, log_line=line.number) for record in chain.records)


def _breaks(lines: Sequence[Line], texts: Sequence[str], start: int, at: int) -> bool:
    """Whether line `at` begins something that cannot belong to the block that began at `start`."""
    text = texts[at]
    if not text.strip():
        return False
    if lines[at].stamped and not lines[start].stamped:
        return True
    if is_progress(text) or _other().match(text) or starts_warning(texts, at) or "python_anomaly_mode" in text:
        return True
    if text[0] == "╭" or text.startswith("-----"):
        return _opens_layout(texts, at)
    if named_exception().match(text) and not texts[at - 1].rstrip().endswith(":") and not text.startswith(" "):
        return True
    return read_metrics(text) is not None


def _opens_layout(texts: Sequence[str], at: int) -> bool:
    """Whether a boxed or an IPython traceback opens at `at`; a mere rule of dashes does not."""
    if texts[at][0] == "╭":
        return starts_box(texts, at)
    return at + 1 < len(texts) and "Traceback (most recent call last)" in texts[at + 1]


def _read_line(line: Line) -> list[Value]:
    """A line outside all tracebacks: its metrics, its facts, and itself."""
    values: list[Value] = []
    row = read_metrics(line.text, line.number)
    if row:
        values.append(row)
    values.extend(read_facts(line.text, line.number))
    if line.level in ("WARNING", "WARN") and row is None:
        values.append(WarningRecord(category="logger", message=line.text.strip(), log_line=line.number))
    elif row is None or not values:
        values.append(LogLine(text=line.text.rstrip(), number=line.number, rank=line.rank))
    return values
