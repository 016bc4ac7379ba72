"""Prefixes that launchers, loggers and collectors put before each line: taken off, with the rank they name.

`[rank3]:` and `[default0]:` (torchrun), `0:` (srun -l), `[1,3]<stderr>:` (mpirun), `(Worker pid=7)` (Ray),
`[pod/x/main]` and CRI (kubectl), `trainer-1 |` (docker compose), timestamps, syslog, glog, Python's logging, loguru.
A prefix that none of these knows is learned from what stands before "Traceback (most recent call last):".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from explainer.ingest.traceback import HEADER_WORDS

_MAX_PREFIXES = 6


class Line(NamedTuple):
    """One line of a log. `stream` tells interleaved writers apart; `stamped` lines carried a timestamp or logger."""

    number: int
    text: str
    rank: int | None = None
    stream: str = ""
    stamped: bool = False
    level: str | None = None


_LEVEL = r"(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|Error|Warning)"
_CLOCK = r"\d{1,2}:\d\d:\d\d(?:[.,]\d+)?"
_ZONE = r"(?:Z|[ ]?[+-]\d\d:?\d\d|[ ]UTC)?"
_KINDS = (
    r"\[(?:rank|Rank|RANK)[ _]?(?P<rank_bracket>\d+)\]:?[ ]?",
    r"\[default(?P<rank_default>\d+)\]:",
    r"\[\d+,(?P<rank_mpi>\d+)\]<std(?:err|out)>:",
    r"(?P<ray>\((?:[\w.<>]+[ ])?pid=\d+(?:,[ ]?ip=[\w.:]+)?\))[ ]?",
    r"(?P<pod>\[pod/[^\]\s]{1,200}\])[ ]",
    r"std(?:err|out)[ ][FP][ ]",
    rf"(?P<stamp_iso>\[?\d{{4}}[-/]\d\d[-/]\d\d[T ]{_CLOCK}{_ZONE}\]?)(?:[ ]?[-|:,][ ]|:?[ ]|$)",
    rf"(?P<stamp_us>\[?\d\d[-/]\d\d(?:[-/]\d{{2,4}})?[ ]{_CLOCK}\]?)(?:[ ]?[-|:,][ ]|[ ]|$)",
    rf"(?P<stamp_clock>\[?{_CLOCK}\]?)(?:[ ]?[-|][ ]|:?[ ])",
    rf"(?P<stamp_syslog>[A-Z][a-z]{{2}}[ ]{{1,2}}\d{{1,2}}[ ]{_CLOCK}[ ][\w.-]+[ ][\w./@-]+(?:\[\d+\])?:[ ])",
    rf"(?P<stamp_glog>\[?[IWEF]\d{{3,4}}[ ]{_CLOCK}(?:[ ]+\d+)?(?:[ ][^\]\s]{{1,200}}:\d+)?\][ ]?)",
    r"(?P<stamp_cpp>\[[IWEF][ ][\w.]+:\d+\][ ])",
    rf"(?P<stamp_hf>\[(?P<level_hf>{_LEVEL})\|[^\]\n]{{1,200}}\](?:[ ][\d:, .-]{{5,40}}>>)?[ ])",
    rf"(?P<stamp_basic>(?P<level_basic>{_LEVEL}):[\w.-]+:)",
    rf"(?P<stamp_loguru>\|[ ]?(?P<level_loguru>{_LEVEL})[ ]*\|[ ][\w.<>]+:[\w<>]+:\d+[ ]-[ ])",
    rf"(?P<stamp_pipe>(?P<level_pipe>{_LEVEL})[ ]*\|[ ](?:[\w.<>]+:[\w<>]+:\d+[ ]-[ ])?)",
    rf"(?P<stamp_name>(?:[\w.]+[ ]-[ ])(?P<level_name>{_LEVEL})[ ]-[ ])",
    rf"(?P<stamp_level>\[(?P<level_bracket>{_LEVEL})\][ ]?(?:\[[\w.:-]+\][ ])?)",
)
_OPENERS = frozenset("[(|0123456789sIWEFDCJMASNO")


@cache
def _prefix() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{kind})" for kind in _KINDS))


def read_lines(numbered: Iterable[tuple[int, str]]) -> list[Line]:
    """Lines with every known prefix taken off, then those that the whole text shows to be prefixes."""
    bare = _strip_uniform(list(numbered))
    return _strip_learned([_strip_known(number, text, rank, stream) for number, text, rank, stream in bare])


def _strip_known(number: int, text: str, rank: int | None, stream: str) -> Line:
    stamped, level = False, None
    for attempt in range(_MAX_PREFIXES):
        if not text or (attempt == 0 and text[0] not in _OPENERS):
            break
        found = _prefix().match(text)
        if found is None or found.end() == 0:
            break
        for name, value in found.groupdict().items():
            if value is None:
                continue
            if name.startswith("rank_"):
                rank, stream = int(value), f"rank {value}"
            elif name.startswith("level_"):
                level = value.upper()
            elif name.startswith("stamp_"):
                stamped = True
            else:
                stream = stream or value
        text = text[found.end() :]
    return Line(number, text, rank, stream, stamped, level)


class _Uniform(NamedTuple):
    """A prefix that is one only where most lines carry it."""

    pattern: str
    share: float
    is_rank: bool
    is_stream: bool


_UNIFORM = (
    _Uniform(r"[ ]{0,4}(?P<key>\d{1,5}):(?:[ ]|$)", 0.5, is_rank=True, is_stream=True),
    _Uniform(r"(?P<key>>)[ ]?", 0.9, is_rank=False, is_stream=False),
    _Uniform(r"(?P<key>[\w.-]+-\d+|[\w.-]*(?:train|worker)[\w.-]*)[ ]+\|(?:[ ]|$)", 0.5, is_rank=False, is_stream=True),
)


def _strip_uniform(numbered: list[tuple[int, str]]) -> list[tuple[int, str, int | None, str]]:
    """Take off `0: `, `> ` or `name | ` where most of the lines that are not empty begin so."""
    lines: list[tuple[int, str, int | None, str]] = [(number, text, None, "") for number, text in numbered]
    written = [text for _, text in numbered if text.strip()]
    for kind in _UNIFORM:
        pattern = re.compile(kind.pattern)
        if not written or sum(1 for text in written if pattern.match(text)) < max(2, kind.share * len(written)):
            continue
        for index, (number, text, rank, stream) in enumerate(lines):
            found = pattern.match(text)
            if found is None:
                continue
            key = found["key"]
            lines[index] = (
                number,
                text[found.end() :],
                int(key) if kind.is_rank else rank,
                (f"rank {key}" if kind.is_rank else key) if kind.is_stream else stream,
            )
    return lines


def _strip_learned(lines: Sequence[Line]) -> list[Line]:
    """Take off what stands before a traceback's header, there and on all lines that begin alike."""
    shapes = dict.fromkeys(shape for line in lines if (shape := _learned_shape(line.text)))
    if not shapes:
        return list(lines)
    pattern = re.compile("|".join(sorted(shapes, key=len, reverse=True)))
    result: list[Line] = []
    for line in lines:
        found = pattern.match(line.text)
        if found:
            line = line._replace(text=line.text[found.end() :], stream=line.stream or _writer(found.group()))
        result.append(line)
    return result


def _learned_shape(text: str) -> str | None:
    """What stands before a header, as a pattern in which numbers are open; None where it is no prefix."""
    at = _header_start(text)
    before = text[:at] if at > 0 else ""
    if not before.strip(" |+") or "\\n" in text or _is_header_word(before):
        return None
    return re.sub(r"\d+", r"\\d+", re.escape(before))


def _header_start(text: str) -> int:
    """Where a traceback's header begins in a line, its words for groups and originals included; -1 for none."""
    at = text.find(HEADER_WORDS)
    for words in ("Exception Group ", "  + ", "Original "):
        at -= len(words) if at >= 0 and text[:at].endswith(words) else 0
    margin = re.search(r"(?P<spaces> {2,})\| $", text[:at]) if at > 0 else None
    if margin:  # inside a group, whose margins are an even number of columns deep
        at -= 2 + len(margin["spaces"]) // 2 * 2
    return at


def _is_header_word(before: str) -> bool:
    """Whether the text before "Traceback" belongs to the header itself: a box or IPython's type."""
    words = ("─", "---", "Error", "Exception", "Interrupt", "Exit")
    return any(word in before for word in words) and not before.rstrip().endswith(":")


def _writer(prefix: str) -> str:
    """A prefix without its clock: what tells two writers apart."""
    return re.sub(rf"{_CLOCK}|\d{{4}}-\d\d-\d\d|\d+%.*", "", prefix).strip()
