"""The cause whose fix was verified leads the report."""

from __future__ import annotations

from explainer.model.finding import Finding
from explainer.model.incident import Incident
from explainer.model.report import Report
from explainer.repair import led_by_proof


def report(*findings: tuple[str, float]) -> Report:
    made = (
        Finding(cause=cause, title=cause, summary="", kind="failure", confidence="possible", score=score)
        for cause, score in findings
    )
    return Report(incident=Incident(), findings=tuple(made))


def causes(given: Report) -> list[tuple[str, float]]:
    return [(one.cause, one.score) for one in given.findings]


def test_what_was_tried_outweighs_what_was_read() -> None:
    """It takes the belief of what led before, says why, and the others follow by theirs."""
    led = led_by_proof(report(("a", 0.5), ("b", 0.2), ("c", 0.1)), "c")
    assert causes(led) == [("c", 0.5), ("b", 0.2), ("a", 0.1)]
    assert [one.says for one in led.findings[0].evidence] == ["the program trains with its fix"]


def test_a_cause_that_led_already() -> None:
    """Nothing is added; neither is it where the fix was one of a failure behind the first."""
    before = report(("a", 0.5), ("b", 0.2))
    assert led_by_proof(before, "a") is before
    assert led_by_proof(before, "of another round") is before
