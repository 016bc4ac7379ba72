"""A whole log as text, to incidents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explainer.ingest.assembly import assemble
from explainer.ingest.block import Block, read_blocks
from explainer.ingest.prefix import Line, read_lines
from explainer.ingest.terminal import split_lines, strip_decoration
from explainer.ingest.unescape import unfold
from explainer.model.incident import Incident


def read_text(text: str, source: str | None = None, first_line: int = 1) -> Iterator[Incident]:
    """The incidents of a log; its first line has the number `first_line`."""
    yield from assemble(blocks_of(text, first_line), source)


def blocks_of(text: str, first_line: int = 1) -> Iterator[Block]:
    """The blocks of a log, writer by writer."""
    numbered = [(number + first_line - 1, line) for number, line in split_lines(strip_decoration(text))]
    lines = read_lines(unfold(numbered))
    for stream in _by_stream(lines):
        yield from read_blocks(stream)


def _by_stream(lines: Sequence[Line]) -> list[list[Line]]:
    """The lines of each writer. Lines without a writer's mark stay with each other."""
    streams: dict[str, list[Line]] = {}
    for line in lines:
        streams.setdefault(line.stream, []).append(line)
    return list(streams.values())
