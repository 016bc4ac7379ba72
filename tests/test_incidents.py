"""Real failures with labels: how often the first cause is right, and how right `certain` and `likely` are."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(scope="module")
def answers(shared, catalog):
    """Each labelled incident with its findings."""
    from explainer.ingest.text import read_text
    from explainer.workflow import explain_incident

    found = []
    for path in sorted((shared / "incidents").glob("*.json")):
        case = json.loads(path.read_text())
        incidents = list(read_text("\n".join(case["log"]) + "\n"))
        assert len(incidents) == 1, case["id"]
        found.append((case, explain_incident(incidents[0], None, catalog).findings))
    return found


def wanted(case: dict) -> set[str]:
    return {case["cause"], *case.get("accept", ())}


def is_hit(case: dict, findings: tuple, depth: int) -> bool:
    if case["cause"] == "other/unknown":
        return not findings or findings[0].confidence == "possible" or findings[0].cause in wanted(case)
    return any(one.cause in wanted(case) for one in findings[:depth])


@pytest.mark.parametrize(("depth", "share"), [(1, 0.90), (3, 0.97)])
def test_rank(answers, depth: int, share: float) -> None:
    """The right cause is first in nine of ten, and among three in nearly all."""
    assert sum(is_hit(case, findings, depth) for case, findings in answers) >= share * len(answers)


def test_nothing_is_wrong_while_certain(answers) -> None:
    """`certain` is never wrong."""
    wrong = [
        case["id"]
        for case, findings in answers
        if findings and findings[0].confidence == "certain" and not is_hit(case, findings, 1)
    ]
    assert wrong == []


def test_likely_is_right(answers) -> None:
    """`likely` is right in at least 85 of 100."""
    sure = [is_hit(case, findings, 1) for case, findings in answers if findings and findings[0].confidence == "likely"]
    assert sum(sure) >= 0.85 * len(sure)


def test_what_the_text_decides_is_answered(answers) -> None:
    """Always saying `possible` is no answer: at least 60 of 100 that the text decides are answered with confidence."""
    decidable = [
        findings for case, findings in answers if case.get("knowable") == "text" and case["cause"] != "other/unknown"
    ]
    sure = [findings for findings in decidable if findings and findings[0].confidence != "possible"]
    assert len(sure) >= 0.60 * len(decidable)
