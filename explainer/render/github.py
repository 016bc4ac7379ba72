"""Reports as GitHub Actions workflow commands, which annotate the line in a pull request."""

from __future__ import annotations

from collections.abc import Container, Sequence

from explainer.model.report import Report
from explainer.render.link import cause_link
from explainer.render.visible import visible

_COMMANDS = {"failure": "error", "silent": "warning", "notice": "notice"}


def render_github(reports: Sequence[Report], unpublished: Container[str] = ()) -> str:
    """One annotation for each report's first finding; for what is not known, a warning.

    Causes of `unpublished` have no page to link to.
    """
    return "".join(_annotation(report, unpublished) for report in reports)


def _annotation(report: Report, unpublished: Container[str]) -> str:
    if not report.findings:
        why = report.unknown.why if report.unknown else "nothing was recognised"
        return f"::warning title=gradfix::{_data(why)}\n"
    finding = report.findings[0]
    culprit = finding.culprits[0] if finding.culprits else None
    place = f"file={_property(culprit.file)}," if culprit else ""
    if culprit and culprit.line:
        place += f"line={culprit.line},"
    fix = f"\nfix: {finding.fixes[0].title}" if finding.fixes else ""
    link = cause_link(finding.cause, unpublished)
    more = f"\nmore: {link}" if link else ""
    text = f"{finding.title} ({finding.confidence})\n{finding.summary}{fix}{more}"
    return f"::{_COMMANDS[finding.kind]} {place}title=gradfix {_property(finding.cause)}::{_data(text)}\n"


def _data(text: str) -> str:
    """`text` as a command's data, where a line feed would end the command."""
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
