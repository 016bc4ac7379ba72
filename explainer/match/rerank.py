"""Ranks findings again once the user's program was read: what the source shows moves belief between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from explainer.match.rank import LIKELY_SHARE
from explainer.model.finding import CERTAIN, LIKELY, POSSIBLE, SYMPTOM_LINE, Finding

SOURCE = "source"
_LEAST = 1e-4
_HANDED_ON = 0.9  # of the mass of a symptom


def rerank(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings in the order that their source evidence gives them.

    A proved one stays first, unless it only names what another cause explains. What was left to "something else" keeps its weight, so that scores do not grow by being divided among fewer.
    """
    if not findings or (findings[0].confidence == CERTAIN and not _is_symptom(findings[0])):
        return tuple(findings)
    moved = {one.cause: sum(each.weight for each in one.evidence if each.reads == SOURCE) for one in findings}
    if not any(moved.values()):
        return tuple(findings)
    mass = {one.cause: max(one.score, _LEAST) * math.exp(moved[one.cause]) for one in findings}
    mass = _handed_on(mass, moved, findings)
    total = sum(mass.values()) + max(1.0 - sum(one.score for one in findings), 0.0)
    ordered = sorted(findings, key=lambda one: -mass[one.cause])
    return tuple(
        replace(
            one, score=round(mass[one.cause] / total, 4), confidence=_confidence(mass[one.cause] / total, index, one)
        )
        for index, one in enumerate(ordered)
    )


def _is_symptom(finding: Finding) -> bool:
    return any(each.id == SYMPTOM_LINE for each in finding.evidence)


def _handed_on(mass: dict[str, float], moved: dict[str, float], findings: Sequence[Finding]) -> dict[str, float]:
    """The mass of a finding that only names a symptom goes to the causes that the source shows, by how much it shows them."""
    symptoms = [one.cause for one in findings if _is_symptom(one)]
    shown = {one.cause: math.exp(2 * moved[one.cause]) for one in findings if moved[one.cause] > 0}
    if not symptoms or not shown:
        return mass
    given = sum(mass[cause] for cause in symptoms) * _HANDED_ON
    kept = {cause: value * (1 - _HANDED_ON) if cause in symptoms else value for cause, value in mass.items()}
    return {cause: value + given * shown.get(cause, 0.0) / sum(shown.values()) for cause, value in kept.items()}


def _confidence(share: float, index: int, finding: Finding) -> str:
    """`likely` needs the share that it needs without source; what only resembles a known message stays `possible`."""
    if index or share < LIKELY_SHARE:
        return POSSIBLE
    resembles = any(each.id == "signature" and "alike)" in each.says for each in finding.evidence)
    return POSSIBLE if resembles else LIKELY
