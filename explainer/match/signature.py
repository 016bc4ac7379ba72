"""Recognises what was printed: the wordings of the rule base in the texts of an incident."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from explainer.catalog.catalog import Catalog
from explainer.match.field import Fields, typed_fields
from explainer.match.utterance import MAX_TEXT, Utterance
from explainer.model.report import Nearest


class SignatureMatch(NamedTuple):
    """A wording found in an utterance, with the values it names; `resembles` where it is only alike."""

    signature: str
    fields: Fields
    utterance: Utterance
    weight: float
    proves: bool
    resembles: Nearest | None = None


@lru_cache(maxsize=2048)
def compiled(pattern: str) -> re.Pattern[str]:
    """A rule's pattern. Patterns were bounded when the rule was read (`catalog.pattern`)."""
    return re.compile(pattern)


_STANDS = {
    "exception": ("exception", "log", "warning"),
    "warning": ("warning", "log", "exception"),
    "log": ("log", "warning", "exception"),
    "metrics": ("metrics",),
}
_MISPLACED = 0.8


def find_signatures(
    catalog: Catalog, utterances: Sequence[Utterance], is_wanted: Callable[[str], bool] = lambda _: True
) -> list[SignatureMatch]:
    """All wordings of the rule base that the utterances show; one match for a signature and an utterance.

    `is_wanted` chooses among the signatures by name.
    """
    found: dict[tuple[str, str, int], SignatureMatch] = {}
    joined = {kind: "\n".join(_texts(utterances, kind)) for kind in ("exception", "warning", "log", "metrics")}
    everything = "\0".join(joined.values())
    for rarest, name, form in _by_rarest_literal(catalog):
        if rarest not in everything or not is_wanted(name):
            continue
        literals = form.get("contains", ())
        for kind in _STANDS[form.get("stands", "exception")]:
            if not joined[kind] or not all(literal in joined[kind] for literal in literals):
                continue
            for match in _in_utterances(name, form, (one for one in utterances if one.kind == kind)):
                key = (name, kind, match.utterance.number)
                if key not in found or _is_better(match, found[key]):
                    found[key] = match
    return list(found.values())


@lru_cache(maxsize=4)
def _by_rarest_literal(catalog: Catalog) -> tuple[tuple[str, str, dict[str, Any]], ...]:
    """Every form with its longest literal, "" for none: nearly all forms are out by looking for that one anywhere."""
    return tuple((max(form.get("contains", ()), key=len, default=""), name, form) for name, form in catalog.forms())


def _texts(utterances: Iterable[Utterance], kind: str) -> Iterator[str]:
    for one in utterances:
        if one.kind == kind:
            yield one.flat
            if one.squeezed is not one.flat:
                yield one.squeezed


def _is_better(match: SignatureMatch, other: SignatureMatch) -> bool:
    return (match.proves, match.weight, len(match.fields)) > (other.proves, other.weight, len(other.fields))


def _in_utterances(name: str, form: dict[str, Any], utterances: Iterable[Utterance]) -> Iterator[SignatureMatch]:
    types = form.get("exceptions", ())
    for one in utterances:
        if types and one.kind == "exception" and one.type and not _is_type(one.type, types):
            continue
        if not form.get("contains") and not (one.kind == "exception" and one.type):
            continue
        if "frame" in form and not has_frame(form["frame"], one):
            continue
        fields = _search(form, one.flat)
        if fields is None and one.squeezed is not one.flat:
            fields = _search(form, one.squeezed)
        if fields is not None:
            is_misplaced = one.kind != form.get("stands", "exception")
            weight = form.get("weight", 0.0) - (_MISPLACED if is_misplaced else 0.0)
            proves = form.get("proves", False) and not is_misplaced
            yield SignatureMatch(name, fields, one, weight, proves)


def _is_type(name: str, wanted: Sequence[str]) -> bool:
    """Whether an exception type is one of `wanted`, with or without its module."""
    return any(name == one or name.rpartition(".")[2] == one.rpartition(".")[2] for one in wanted)


def has_frame(pattern: str, utterance: Utterance) -> bool:
    """Whether the exception went through a frame whose file, function or code the pattern finds."""
    return any(
        compiled(pattern).search(
            f"{frame.file.replace(chr(92), '/')} {frame.function or ''} {frame.code or ''}"[:MAX_TEXT]
        )
        for frame in utterance.frames
    )


def _search(form: dict[str, Any], text: str) -> Fields | None:
    if not all(literal in text for literal in form.get("contains", ())):
        return None
    pattern = form.get("pattern")
    if pattern is None:
        return {}
    found = compiled(pattern).search(text)
    return typed_fields(found.groupdict()) if found else None
