"""A report as HTML without scripts or anything fetched: a fragment for notebooks, a page for the command line."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from html import escape

from explainer.model.finding import CERTAIN, Culprit, Finding
from explainer.model.incident import CAUGHT
from explainer.model.report import Report, Unknown
from explainer.render.link import cause_link
from explainer.render.memory import change_lines, changes_heading, seen_line
from explainer.render.visible import visible

_STYLE = (
    "font-family:system-ui,sans-serif;line-height:1.45;max-width:60em;border:1px solid #8886;border-left:4px solid #d33;"
    "border-radius:6px;padding:.8em 1.1em;margin:.6em 0"
)
_CODE = "background:#8882;padding:.5em .7em;border-radius:4px;overflow-x:auto;white-space:pre-wrap;margin:.3em 0"


def render_html(report: Report, top: int = 1, unpublished: Container[str] = ()) -> str:
    """The report as one `<div>`; causes of `unpublished` have no page to link to."""
    parts = [f'<div class="gradfix" style="{_STYLE}">', *_message(report)]
    if report.seen is not None:
        parts.append(f"<p>{_prose(seen_line(report.seen))}</p>")
    for index, finding in enumerate(report.findings[:top]):
        parts.extend(_finding(finding, cause_link(finding.cause, unpublished), is_open=index == 0))
    rest = report.findings[top:]
    if rest:
        names = ", ".join(f"<code>{_text(finding.cause)}</code> ({finding.score:.0%})" for finding in rest[:5])
        parts.append(f"<p><small>Also possible: {names}</small></p>")
    if report.unknown is not None:
        parts.extend(_unknown(report.unknown))
    if report.changes is not None:
        parts.append(f"<p>{_prose(changes_heading(report.changes))}</p>")
        lines = (line.partition(" ")[2] for line in change_lines(report.changes.items, None))
        parts.extend(_list("What changed", (_prose(line) for line in lines), is_open=True))
    parts.append("</div>")
    return "\n".join(parts) + "\n"


def render_page(reports: Iterable[Report], top: int = 1, unpublished: Container[str] = ()) -> str:
    """A whole document with the reports one under the other."""
    body = "".join(render_html(report, top, unpublished) for report in reports)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>gradfix</title>'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"></head>\n'
        f"<body>\n{body}</body></html>\n"
    )


def _text(text: str) -> str:
    return escape(visible(text))


def _prose(text: str) -> str:
    """Our own prose: its code spans become `<code>`, everything else is escaped."""
    parts = re.split(r"`([^`]*)`", visible(text))
    return "".join(f"<code>{escape(part)}</code>" if index % 2 else escape(part) for index, part in enumerate(parts))


def _message(report: Report) -> Iterator[str]:
    named = [record for record in report.incident.exceptions if record.type]
    if named:
        record = named[-1] if named[-1].link == "during_handling" else named[0]
        text = f"{record.type}: {record.message}" if record.message else record.type
        yield f'<pre style="{_CODE}">{_text(text[:2000])}</pre>'
        caught = report.incident.fact(CAUGHT)
        if caught is not None:
            yield f"<p>{_prose(str(caught.value))}</p>"


def _finding(finding: Finding, link: str | None, *, is_open: bool) -> Iterator[str]:
    belief = finding.confidence if finding.confidence == CERTAIN else f"{finding.confidence}, {finding.score:.0%}"
    yield f"<h3 style='margin:.4em 0 .1em'>{_prose(finding.title)}</h3>"
    name = f"<code>{_text(finding.cause)}</code>"
    named = f'<a href="{escape(link)}">{name}</a>' if link else name
    yield f"<p style='margin:.1em 0'>{named} <b>{_text(belief)}</b></p>"
    yield f"<p>{_prose(finding.summary)}</p>"
    for culprit in finding.culprits:
        yield from _culprit(culprit)
    yield from _list(
        "Why", (f"{_prose(one.says)} <small>[{_text(one.reads)}]</small>" for one in finding.evidence), is_open=is_open
    )
    yield from _list(
        "What to do", (_fix(fix.title, fix.because, fix.command, fix.patch) for fix in finding.fixes), is_open=is_open
    )
    yield from _list(
        "What not to do", (f"{_prose(myth.remedy)}: {_prose(myth.why)}" for myth in finding.myths), is_open=is_open
    )
    others = (f"<code>{_text(other.cause)}</code>: {_prose(other.decides)}" for other in finding.look_alikes)
    yield from _list("What would tell it apart", others, is_open=False)


def _fix(title: str, because: str, command: str | None, patch: str | None) -> str:
    shown = _prose(title) + (f"<br><small>{_prose(because)}</small>" if because else "")
    for block in (command, patch):
        if block:
            shown += f'<pre style="{_CODE}">{_text(block)}</pre>'
    return shown


def _list(title: str, items: Iterable[str], *, is_open: bool) -> Iterator[str]:
    entries = [f"<li>{item}</li>" for item in items]
    if entries:
        state = " open" if is_open else ""
        yield f"<details{state}><summary><b>{title}</b></summary><ul>{''.join(entries)}</ul></details>"


def _culprit(culprit: Culprit) -> Iterator[str]:
    place = f"{culprit.file}:{culprit.line}" if culprit.line else culprit.file
    inside = f" in <code>{_text(culprit.function)}</code>" if culprit.function else ""
    yield f"<p style='margin:.3em 0'><code>{_text(place)}</code>{inside}</p>"
    if culprit.code:
        start, end = culprit.mark or (0, 0)
        first, _, more = culprit.code.partition("\n")
        marked = (
            f"{_text(first[:start])}<mark>{_text(first[start:end])}</mark>{_text(first[end:])}" if end else _text(first)
        )
        rest = f"\n{_text(more)}" if more else ""
        yield f'<pre style="{_CODE}">{marked}{rest}</pre>'


def _unknown(unknown: Unknown) -> Iterator[str]:
    yield f"<h3>The cause is not known</h3><p>{_prose(unknown.why)}</p>"
    near = (f"{one.similarity:.0%} <code>{_text(one.message[:300])}</code>" for one in unknown.nearest)
    yield from _list("Nearest known messages", near, is_open=True)
    if unknown.missing:
        yield f"<p>Missing: {_prose('; '.join(unknown.missing))}</p>"
    if unknown.next_command:
        yield f'<p>Next:</p><pre style="{_CODE}">{_text(unknown.next_command)}</pre>'
