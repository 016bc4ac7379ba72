"""A report as Markdown, for an issue or a pull request; what users wrote stands in code fences and spans."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from explainer.model.finding import CERTAIN, Culprit, Finding
from explainer.model.incident import CAUGHT
from explainer.model.report import Report, Unknown
from explainer.render.link import cause_link
from explainer.render.memory import change_lines, changes_heading, seen_line
from explainer.render.visible import one_line, visible


def render_markdown(report: Report, top: int = 1, unpublished: Container[str] = ()) -> str:
    """The report as a Markdown document with its `top` first findings in full; causes of `unpublished` have no page."""
    lines = list(_message(report))
    if report.seen is not None:
        lines.extend([plain(seen_line(report.seen)), ""])
    for finding in report.findings[:top]:
        lines.extend(_finding(finding, cause_link(finding.cause, unpublished)))
    rest = report.findings[top:]
    if rest:
        names = ", ".join(f"`{finding.cause}` ({finding.score:.0%})" for finding in rest[:5])
        lines.extend([f"Also possible: {names}", ""])
    if report.unknown is not None:
        lines.extend(_unknown(report.unknown))
    if report.changes is not None:
        lines.extend(["", "### What changed", "", plain(changes_heading(report.changes)), ""])
        lines.extend(plain(line) for line in change_lines(report.changes.items, None))
    return "\n".join(lines).rstrip() + "\n"


def code_span(text: str, limit: int = 300) -> str:
    """`text` as an inline code span that it cannot end."""
    flat = one_line(text, limit)
    ticks = "`" * (1 + max((len(run) for run in re.findall(r"`+", flat)), default=0))
    space = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{space}{flat}{space}{ticks}" if flat else ""


def code_block(text: str, language: str = "") -> list[str]:
    """`text` as a fenced block that it cannot end."""
    shown = visible(text)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", shown)), default=0))
    return [f"{fence}{language}", *shown.split("\n"), fence]


def plain(text: str) -> str:
    """Our own prose as Markdown: its code spans stay, everything else that Markdown or HTML would read is escaped."""
    parts = re.split(r"(`[^`]*`)", visible(text))
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_\[\]<>#|])", r"\\\1", part) for part in parts)


def _message(report: Report) -> Iterator[str]:
    named = [record for record in report.incident.exceptions if record.type]
    if named:
        record = named[-1] if named[-1].link == "during_handling" else named[0]
        text = f"{record.type}: {record.message}" if record.message else record.type
        yield from code_block(text[:2000], "text")
        yield ""
        caught = report.incident.fact(CAUGHT)
        if caught is not None:
            yield from (plain(str(caught.value)), "")


def _finding(finding: Finding, link: str | None) -> Iterator[str]:
    belief = finding.confidence if finding.confidence == CERTAIN else f"{finding.confidence}, {finding.score:.0%}"
    name = f"[`{finding.cause}`]({link})" if link else f"`{finding.cause}`"
    yield from (f"## {plain(finding.title)}", "", f"{name} ({belief})", "", plain(finding.summary), "")
    for culprit in finding.culprits:
        yield from _culprit(culprit)
    yield from ("### Why", "")
    for one in finding.evidence:
        yield f"- {plain(one.says)} ({one.reads}{', against' if one.weight < 0 else ''})"
    yield ""
    if finding.fixes:
        yield from ("### What to do", "")
        for number, fix in enumerate(finding.fixes, start=1):
            yield f"{number}. {plain(fix.title)}" + (f": {plain(fix.because)}" if fix.because else "")
            if fix.command:
                yield from (f"   {line}" for line in code_block(fix.command, "sh"))
            if fix.patch:
                yield from (f"   {line}" for line in code_block(fix.patch, "diff"))
        yield ""
    if finding.myths:
        yield from ("### What not to do", "")
        yield from (f"- {plain(myth.remedy)}: {plain(myth.why)}" for myth in finding.myths)
        yield ""
    if finding.look_alikes:
        yield from ("### What would tell it apart", "")
        yield from (f"- `{other.cause}`: {plain(other.decides)}" for other in finding.look_alikes)
        yield ""


def _culprit(culprit: Culprit) -> Iterator[str]:
    place = f"{culprit.file}:{culprit.line}" if culprit.line else culprit.file
    yield f"{code_span(place)}{f' in {code_span(culprit.function)}' if culprit.function else ''}"
    if culprit.code:
        yield from code_block(culprit.code, "python")
    yield ""


def _unknown(unknown: Unknown) -> Iterator[str]:
    yield from ("## The cause is not known", "", plain(unknown.why), "")
    for near in unknown.nearest:
        yield f"- {near.similarity:.0%} {code_span(near.message)} ({', '.join(f'`{cause}`' for cause in near.causes)})"
    if unknown.missing:
        yield f"- missing: {plain('; '.join(unknown.missing))}"
    if unknown.next_command:
        yield f"- next: {code_span(unknown.next_command)}"
