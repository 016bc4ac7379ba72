"""Chained exceptions and exception groups: one after another, or one inside another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from explainer.ingest.traceback import Stops, exception_line, header, is_frame, read_exception
from explainer.model.incident import ExceptionRecord

_MAX_DEPTH = 12


class Chain(NamedTuple):
    """The exceptions of one printed chain, origin first, and the index of the first line after it."""

    records: tuple[ExceptionRecord, ...]
    end: int


def link_of(text: str) -> str | None:
    """How the next exception hangs on the last one, where `text` is the sentence that says so."""
    if "above exception" not in text:
        return None
    if text.lstrip(" |").startswith("During handling of the above exception, another exception occurred"):
        return "during_handling"
    if text.lstrip(" |").startswith("The above exception was the direct cause of the following exception"):
        return "direct_cause"
    return None


@cache
def _group_header() -> re.Pattern[str]:
    """The first line of a printed group; one that was never raised has no header but its own line."""
    return re.compile(
        r"(?P<indent> *)(?:\+ Exception Group Traceback \(most recent call last\):|\| [\w.<>]+: .*\(\d+ sub-exceptions?\)$)"
    )


@cache
def _member() -> re.Pattern[str]:
    """The rule above a member of a group: `+-+------ 1 ------` opens the list, `+------ 2 ------` goes on."""
    return re.compile(r"\+-(?P<first>\+-)?-*(?: (?:\d+|\.\.\.) -+)?$")


def starts_chain(texts: Sequence[str], index: int) -> bool:
    """Whether a traceback begins at `index`: a header, or a frame whose header was cut off."""
    text = texts[index]
    if "raceback (most recent" in text:
        return bool(header().match(text) or _group_header().match(text))
    return is_frame(text) or ("sub-exception" in text and bool(_group_header().match(text)))


def read_chain(texts: Sequence[str], start: int, stops: Stops) -> Chain | None:
    """All exceptions of the chain that begins at `start`, or None where none does."""
    records: list[ExceptionRecord] = []
    index, link = start, None
    while index < len(texts):
        read = _read_group(texts, index) if _group_header().match(texts[index]) else None
        if read is None:
            single = read_exception(texts, index, stops)
            read = Chain((single.record,), single.end) if single else None
        if read is None:
            break
        records.extend(_linked(read.records, link, len(records)))
        index = read.end
        following = _next_link(texts, index)
        if following is None:
            break
        link, index = following
    return Chain(tuple(records), index) if records else None


def _linked(records: Sequence[ExceptionRecord], link: str | None, offset: int) -> list[ExceptionRecord]:
    """`records` as they stand behind `offset` others, the first of them hanging by `link`."""
    moved = [replace(record, parent=None if record.parent is None else record.parent + offset) for record in records]
    if moved and link:
        moved[0] = replace(moved[0], link=link)
    return moved


def _next_link(texts: Sequence[str], index: int) -> tuple[str, int] | None:
    """The chain's sentence at or just after `index`, and where the exception after it begins."""
    while index < len(texts) and not texts[index].strip(" |"):
        index += 1
    link = link_of(texts[index]) if index < len(texts) else None
    if link is None:
        return None
    index += 1
    while index < len(texts) and not texts[index].strip(" |"):
        index += 1
    if index < len(texts) and (starts_chain(texts, index) or exception_line().match(texts[index])):
        return link, index
    return None


def _read_group(texts: Sequence[str], start: int) -> Chain | None:
    found = _group_header().match(texts[start])
    if found is None:
        return None
    indent = len(found["indent"])
    end = start + 1
    while end < len(texts) and texts[end][:indent].strip() == "" and texts[end][indent : indent + 1] in ("|", "+", " "):
        end += 1
    first = texts[start][indent:]
    region = ["| " + first[2:], *(text[indent:] for text in texts[start + 1 : end])]
    while region and not region[-1].strip():
        region.pop()
        end -= 1
    return Chain(tuple(_read_level(region, 0)), end)


def _read_level(lines: Sequence[str], depth: int) -> list[ExceptionRecord]:
    """The exceptions of one nesting level; its own lines begin with `|`, its members' are two columns deeper."""
    records: list[ExceptionRecord] = []
    own: list[str] = []
    index = 0
    while index < len(lines):
        found = _member().match(lines[index]) if lines[index].startswith("+-+") else None
        if found is None:
            own.append(lines[index][2:] if lines[index].startswith("|") else lines[index])
            index += 1
            continue
        records.extend(_read_own(own, len(records)))
        own = []
        end = index + 1
        while end < len(lines) and lines[end].startswith("  "):
            end += 1
        parent = _last_without_parent(records)
        for member in _split_members([line[2:] for line in lines[index + 1 : end]]):
            inner = _read_level(member, depth + 1) if depth < _MAX_DEPTH else []
            records.extend(_members(inner, parent, len(records)))
        index = end
    records.extend(_read_own(own, len(records)))
    return records


def _read_own(lines: Sequence[str], offset: int) -> list[ExceptionRecord]:
    texts = list(lines)
    while texts and not texts[0].strip():
        texts.pop(0)
    if not texts:
        return []
    link = link_of(texts[0])
    if link:
        texts = texts[1:]
        while texts and not texts[0].strip():
            texts.pop(0)
    chain = read_chain(texts, 0, lambda _: False) if texts else None
    return _linked(chain.records, link, offset) if chain else []


def _last_without_parent(records: Sequence[ExceptionRecord]) -> int | None:
    return next((index for index in range(len(records) - 1, -1, -1) if records[index].parent is None), None)


def _members(inner: Sequence[ExceptionRecord], parent: int | None, offset: int) -> list[ExceptionRecord]:
    """The exceptions of one member, hung under the group at `parent`."""
    hung: list[ExceptionRecord] = []
    for record in inner:
        if record.parent is None:
            hung.append(replace(record, parent=parent, link=record.link or "group_member"))
        else:
            hung.append(replace(record, parent=record.parent + offset))
    return hung


def _split_members(lines: Sequence[str]) -> list[list[str]]:
    members: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("+--") and _member().match(line):
            members.append([])
        else:
            members[-1].append(line)
    return [member for member in members if member]
