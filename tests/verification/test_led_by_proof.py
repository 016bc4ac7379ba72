"""The cause whose fix was verified leads the report."""

from __future__ import annotations

from dataclasses import replace

from explainer.model.finding import Culprit, Finding, Fix
from explainer.model.incident import Incident
from explainer.model.patch import FilePatch
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
    led = led_by_proof(report(("a", 0.5), ("b", 0.2), ("c", 0.1)), "c", "edit")
    assert causes(led) == [("c", 0.5), ("b", 0.2), ("a", 0.1)]
    assert [one.says for one in led.findings[0].evidence] == ["the program trains with its fix"]


def test_a_cause_that_led_already() -> None:
    """Nothing is added; neither is it where the fix was one of a failure behind the first."""
    before = report(("a", 0.5), ("b", 0.2))
    assert led_by_proof(before, "a", "edit") is before
    assert led_by_proof(before, "of another round", "edit") is before


def lines_told(*whys: str | None) -> list[int | None]:
    """The lines that a finding names once the fix is verified that changes the second of them."""
    changes = FilePatch(file="/home/me/net.py", before=b"users = 1\nitems = 1\n", after=b"users = 1\nitems = 2\n")
    fixes = (
        Fix(id="dense", title="", applicability="safe", kind="edit"),
        Fix(id="dense~2", title="", applicability="safe", kind="edit", changes=(changes,)),
    )
    culprits = tuple(Culprit(file="net.py", line=line, why=why) for line, why in enumerate(whys, 1))
    given = report(("a", 0.5))
    given = replace(given, findings=(replace(given.findings[0], fixes=fixes, culprits=culprits),))
    return [one.line for one in led_by_proof(given, "a", "dense~2").findings[0].culprits]


def test_of_lines_alike_the_one_that_was_changed_leads() -> None:
    assert lines_told("is sparse", "is sparse", "is sparse") == [2, 1, 3]


def test_a_line_of_which_more_is_known_stays_in_front() -> None:
    assert lines_told("writes what was saved", "reads it", None) == [1, 2, 3]
