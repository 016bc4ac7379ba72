"""A finding that only names a symptom gives way to the cause that the source shows."""

from __future__ import annotations

import pytest

from explainer.match.rerank import rerank
from explainer.model.finding import Evidence, Finding


def finding(cause: str, score: float, *evidence: tuple[str, float]) -> Finding:
    read = tuple(Evidence(id=id, reads="source", says="a line", weight=weight) for id, weight in evidence)
    return Finding(
        cause=cause, title=cause, summary="", kind="failure", confidence="possible", score=score, evidence=read
    )


CASES = {
    "no other line is shown": ((("symptom-line", 0.0),), (("no-source-line", -0.5),), "nan/symptom"),
    "the symptom's line is not shown": ((("no-source-line", -0.5),), (("no-source-line", -0.5),), "nan/symptom"),
    "the cause's line is shown": ((("symptom-line", 0.0),), (("source-line", 0.9),), "nan/cause"),
}


@pytest.mark.parametrize(("symptom", "cause", "first"), CASES.values(), ids=CASES)
def test_symptom_gives_way(symptom, cause, first: str) -> None:
    """Its mass goes to the causes whose own lines the source shows, and stays where there are none."""
    ranked = rerank([finding("nan/symptom", 0.9, *symptom), finding("nan/cause", 0.02, *cause)])
    assert ranked[0].cause == first
    assert sum(one.score for one in ranked) <= 1.0
