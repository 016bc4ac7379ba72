"""Searches the rule base by words; typos are allowed."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from explainer.catalog.catalog import Catalog
from explainer.catalog.prose import read_prose
from explainer.errors import UsageError

MIN_LIKENESS = 74.0
_NEAR_WORDS = 8


class Hit(NamedTuple):
    """A cause that was found, and how well it fits; scores compare within one search only."""

    cause: str
    score: float


def search(catalog: Catalog, query: str, limit: int = 8, extra: str | None = None) -> list[Hit]:
    """The causes that fit the words of `query` best: by id, title, message, operation, library or symptom."""
    from rapidfuzz import fuzz, process

    index = _index(catalog, extra)
    vocabulary = list(index)
    total = len(catalog.cause_ids)
    scores: defaultdict[str, float] = defaultdict(float)
    for word in dict.fromkeys(_words(query)):
        best: dict[str, float] = {}
        near = process.extract(word, vocabulary, scorer=fuzz.ratio, score_cutoff=MIN_LIKENESS, limit=_NEAR_WORDS)
        for known, likeness, _ in near:
            rarity = math.log(1 + total / len(index[known]))
            for cause, weight in index[known].items():
                best[cause] = max(best.get(cause, 0.0), (likeness / 100) ** 3 * weight * rarity)
        for cause, score in best.items():
            scores[cause] += score
    ranked = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    return [Hit(cause, round(score, 2)) for cause, score in ranked[:limit]]


def find_cause(catalog: Catalog, wanted: str) -> str:
    """The id that `wanted` is, or the one that it is a part of.

    Raises:
        UsageError: there is none, or more than one; near ones are named.
    """
    if wanted in catalog.cause_ids:
        return wanted
    parts = [cause for cause in catalog.cause_ids if wanted and wanted in cause]
    if len(parts) == 1:
        return parts[0]
    from rapidfuzz import process

    near = parts[:5] or [found[0] for found in process.extract(wanted, catalog.cause_ids, limit=3, score_cutoff=50)]
    hint = f"; did you mean {', '.join(near)}?" if near else "; `gradfix rules list` shows them"
    raise UsageError(f"no cause {wanted!r}{hint}")


@lru_cache(maxsize=2)
def _index(catalog: Catalog, extra: str | None) -> dict[str, dict[str, float]]:
    """Each word with the causes that hold it, and the weight of the best place in which it stands."""
    index: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for cause in catalog.cause_ids:
        for text, weight in _texts(catalog, cause, extra):
            for word in set(_words(text)):
                index[word][cause] = max(index[word].get(cause, 0.0), weight)
    return index


def _texts(catalog: Catalog, name: str, extra: str | None) -> Iterator[tuple[str, float]]:
    cause = catalog.cause(name)
    yield name.replace("/", " ").replace("-", " "), 3.0
    yield cause.title, 3.0
    yield cause.summary, 2.0
    for signature in (*cause.signatures, name):
        for form in catalog.signature(signature).forms:
            yield " ".join((*form.contains, *form.samples)), 1.5 if signature == name else 1.0
    for rule in cause.evidence:
        yield rule.says, 0.8
    for fix in cause.fixes:
        yield fix.title, 0.8
    yield read_prose(name, extra) or "", 0.5


def _words(text: str) -> Iterator[str]:
    """Words and the parts of names: `loss.requires_grad_(True)` gives loss, requires_grad_, requires, grad, true."""
    for found in re.finditer(r"[A-Za-z][\w.]*[A-Za-z0-9_]", text[:40_000]):
        whole = found[0].lower()
        yield whole
        parts = re.split(r"[._]+", whole)
        if len(parts) > 1:
            yield from (part for part in parts if len(part) > 1)
