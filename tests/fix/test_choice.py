"""Which edit `--apply` takes."""

from __future__ import annotations

import pytest

from explainer.fix.choice import Choice, choose, list_choices
from explainer.model.finding import Finding, Fix
from explainer.model.incident import Incident
from explainer.model.patch import FilePatch
from explainer.model.report import Report

CHANGE = (FilePatch(file="/p/a.py", before=b"a", after=b"b"),)


def fix(name: str, applicability: str, because: str = "") -> Fix:
    changes = () if name == "advice" else CHANGE
    return Fix(id=name, title="t", applicability=applicability, kind="edit", because=because, changes=changes)


def finding(cause: str, confidence: str, *fixes: Fix) -> Finding:
    return Finding(
        cause=cause, title="t", summary="s", kind="failure", confidence=confidence, score=0.5, fixes=fixes
    )  # fmt: skip


REPORT = Report(
    incident=Incident(),
    findings=(
        finding("a/first", "likely", fix("advice", "display"), fix("costly", "unsafe", "more memory")),
        finding("a/second", "likely", fix("good", "safe"), fix("shown", "display", "look")),
        finding("b/third", "possible", fix("doubtful", "safe")),
    ),
)
LISTED = {
    "all of them": ({}, ["costly", "good", "shown", "doubtful"]),
    "of a cause": ({"cause": "a/second"}, ["good", "shown"]),
    "of a cause by its slug": ({"cause": "third"}, ["doubtful"]),
    "by id": ({"fix": "good"}, ["good"]),
    "advice is no edit": ({"fix": "advice"}, []),
    "of another cause": ({"fix": "good", "cause": "first"}, []),
}
CHOSEN = {
    "the first safe one": ({}, False, "good"),
    "unsafe ones allowed": ({}, True, "costly"),
    "a named one may be unsafe": ({"fix": "costly"}, False, "costly"),
    "a named one may be doubtful": ({"fix": "doubtful"}, False, "doubtful"),
    "asked for by its cause": ({"cause": "b/third"}, False, "doubtful"),
}
REFUSED = {
    "unsafe ones alone": ({"cause": "a/first"}, False, "`costly` is unsafe: more memory; --unsafe-fixes applies it"),
    "what is only shown": ({"fix": "shown"}, True, "`shown` is shown only: look"),
}


@pytest.mark.parametrize(("named", "names"), LISTED.values(), ids=LISTED.keys())
def test_listed(named: dict, names: list[str]) -> None:
    """The edits of the findings in their order."""
    assert [one.fix.id for one in list_choices(REPORT, **named)] == names


@pytest.mark.parametrize(("named", "allow_unsafe", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(named: dict, allow_unsafe: bool, reason: str) -> None:
    """Where none may be applied unasked, the first one's reason is given."""
    choices = list(list_choices(REPORT, **named))
    assert choose(choices, is_named="fix" in named, allow_unsafe=allow_unsafe).reason == reason


def test_a_cause_that_is_only_possible() -> None:
    """A safe edit for a doubtful cause further down is not taken unasked."""
    report = Report(incident=Incident(), findings=(REPORT.findings[0], REPORT.findings[2]))
    refused = choose(list(list_choices(report)), is_named=False, allow_unsafe=False)
    assert refused.reason.startswith("`costly` is unsafe")


@pytest.mark.parametrize(("named", "allow_unsafe", "name"), CHOSEN.values(), ids=CHOSEN.keys())
def test_chosen(named: dict, allow_unsafe: bool, name: str) -> None:
    """The first safe edit, or the one that was named."""
    chosen = choose(list(list_choices(REPORT, **named)), is_named="fix" in named, allow_unsafe=allow_unsafe)
    assert isinstance(chosen, Choice)
    assert chosen.fix.id == name
