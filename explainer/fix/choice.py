"""Which edit of a report is applied: the one that was named, or the first that may be applied unasked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from explainer.model.finding import POSSIBLE, Finding, Fix
from explainer.model.journal import Refused
from explainer.model.report import Report

SAFE, UNSAFE, DISPLAY = "safe", "unsafe", "display"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An edit, and the finding that it cures."""

    finding: Finding
    fix: Fix


def list_choices(report: Report, *, fix: str | None = None, cause: str | None = None) -> Iterator[Choice]:
    """The edits of a report in its order, of one cause or with one id where these are given."""
    for finding in report.findings:
        if cause is None or cause in (finding.cause, finding.cause.partition("/")[2]):
            for one in finding.fixes:
                if one.changes and fix in (None, one.id):
                    yield Choice(finding=finding, fix=one)


def choose(choices: list[Choice], *, is_named: bool, allow_unsafe: bool) -> Choice | Refused:
    """The edit to apply, of at least one. Named (by its id) it may be unsafe.

    Unasked, an edit for a cause that is only possible is not taken.
    """
    allowed = {SAFE, UNSAFE} if is_named or allow_unsafe else {SAFE}
    reasons = [_why_not(one, allowed, is_first=at == 0 or is_named) for at, one in enumerate(choices)]
    return next((one for one, reason in zip(choices, reasons, strict=True) if reason is None), None) or Refused(
        reason=reasons[0] or ""
    )


def _why_not(choice: Choice, allowed: set[str], *, is_first: bool) -> str | None:
    fix, cause = choice.fix, choice.finding.cause
    if fix.applicability == DISPLAY:
        return f"`{fix.id}` is shown only: {fix.because or 'apply it by hand'}"
    if fix.applicability not in allowed:
        return f"`{fix.id}` is unsafe: {fix.because or fix.title}; --unsafe-fixes applies it"
    if choice.finding.confidence == POSSIBLE and not is_first:
        return f"`{fix.id}` cures {cause}, which is only possible; --fix {fix.id} applies it"
    return None
