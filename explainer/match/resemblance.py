"""Messages that no wording fits exactly: retyped, translated by hand, cut off; compared with the samples of the rules.

What resembles is never more than possible: the finding says how alike the two are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from explainer.catalog.catalog import Catalog
from explainer.match.signature import SignatureMatch, has_frame
from explainer.match.utterance import Utterance
from explainer.model.report import Nearest

MIN_LIKENESS = 86.0
MIN_NEAR = 60.0
MIN_LENGTH = 24
_MAX_LENGTH = 400
_MAX_LINES = 6
_TRIED = 4
_PENALTY = 2.0


def find_resembling(catalog: Catalog, utterances: Sequence[Utterance]) -> list[SignatureMatch]:
    """For the exceptions, or the few lines of a log that holds nothing else, the signature that is most alike."""
    said = [one for one in utterances if one.kind == "exception" and one.type]
    lines = [one for one in utterances if one.kind == "log" and len(one.flat) >= MIN_LENGTH]
    said = said or (lines if len(lines) <= _MAX_LINES else [])
    found: list[SignatureMatch] = []
    for one in said:
        best = next(
            (
                near
                for near in nearest(catalog, one.flat, limit=_TRIED, cutoff=MIN_LIKENESS)
                if _may_stand(near, one, catalog)
            ),
            None,
        )
        if best is not None:
            found.append(SignatureMatch(best.signature, {}, one, -_PENALTY, proves=False, resembles=best))
    return found


def _may_stand(near: Nearest, said: Utterance, catalog: Catalog) -> bool:
    """Whether a wording that is asked of a library's frames may be meant: not where there are frames, and none of its own."""
    pattern = _frames_asked(catalog).get((near.signature, near.message))
    return pattern is None or not said.frames or has_frame(pattern, said)


@lru_cache(maxsize=4)
def _frames_asked(catalog: Catalog) -> dict[tuple[str, str], str]:
    """The frame that a sample's wording asks for, by signature and text."""
    return {
        (name, sample["text"]): form["frame"]
        for name, form in catalog.forms()
        if "frame" in form
        for sample in form.get("sample", ())
    }


def nearest(catalog: Catalog, message: str, *, limit: int, cutoff: float = MIN_NEAR) -> list[Nearest]:
    """The known messages that resemble `message` most, best first; one for each signature.

    Numbers and marks do not count. A message may be cut off at its end.
    """
    text = _plain(message)
    if len(text) < MIN_LENGTH:
        return []
    from rapidfuzz import fuzz, process

    samples = _plain_samples(catalog)
    whole = process.extract(text, samples, scorer=fuzz.ratio, limit=4 * limit, score_cutoff=cutoff)
    begun = {key: plain[: len(text)] for key, plain in samples.items() if len(plain) > len(text)}
    cut = process.extract(text, begun, scorer=fuzz.ratio, limit=4 * limit, score_cutoff=cutoff)
    best: dict[str, Nearest] = {}
    for _, score, (name, sample) in sorted([*whole, *cut], key=lambda one: -one[1]):
        share = round(score / 100, 2)
        best.setdefault(name, Nearest(signature=name, message=sample, similarity=share, causes=catalog.causes_of(name)))
    return list(best.values())[:limit]


@lru_cache(maxsize=4)
def _plain_samples(catalog: Catalog) -> dict[tuple[str, str], str]:
    """The samples of all wordings in plain words, by signature and text; made once, as a triage asks for each log."""
    return {(name, sample): _plain(sample) for name, sample in _samples(catalog)}


def _samples(catalog: Catalog) -> Iterator[tuple[str, str]]:
    for name, form in catalog.forms():
        for sample in form.get("sample", ()):
            yield name, sample["text"]


def _plain(text: str) -> str:
    """What a text says without its numbers, marks and case."""
    return " ".join(re.sub(r"[\d\W_]+", " ", text[:_MAX_LENGTH].lower()).split())
