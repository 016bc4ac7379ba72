"""The card: what happened, where, why, what to do, what not to do. Plain ANSI, so that it costs no import."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.model.environment import Environment
from explainer.model.finding import CERTAIN, LIKELY, RANK_EVIDENCE, Culprit, Evidence, Finding
from explainer.model.incident import CAUGHT, ExceptionRecord, Incident
from explainer.model.memory import Changes
from explainer.model.report import Report, Unknown
from explainer.render.memory import MAX_CHANGES, change_lines, changes_heading, seen_line
from explainer.render.visible import one_line, visible
from explainer.render.wrap import columns, wrap

MAX_DIFF = 14
_WORTH_NAMING = 0.01
_LABEL = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How to print: the width in columns, colour or not, everything or the essence, how many findings."""

    width: int = 100
    is_coloured: bool = False
    is_verbose: bool = False
    top: int = 1


def render_terminal(report: Report, layout: Layout) -> str:
    """The report as text for a terminal, with a final line feed."""
    paint = _Paint(is_on=layout.is_coloured)
    lines: list[str] = list(_headline(report.incident, layout, paint))
    if report.seen is not None:
        lines.extend(paint.warn(line) for line in wrap(seen_line(report.seen), layout.width))
    for index, finding in enumerate(report.findings[: layout.top]):
        lines.extend(_finding(finding, layout, paint, is_first=index == 0))
    rest = report.findings[layout.top :]
    if rest:
        lines.extend(_rest(rest, layout, paint))
    if report.unknown is not None:
        lines.extend(_unknown(report.unknown, layout, paint))
    if report.changes is not None:
        lines.extend(render_changes(report.changes, layout))
    if layout.is_verbose and report.fingerprint is not None:
        lines.extend(["", paint.dim(f"fingerprint {report.fingerprint}")])
    if layout.is_verbose and report.environment is not None:
        lines.extend(_environment(report.environment, layout, paint))
    lines.extend(paint.warn(f"a rule could not be used: {one_line(fault, 200)}") for fault in report.faults)
    if report.findings:
        name = report.findings[0].cause
        hint = f"gradfix rules show {name}" + ("" if layout.is_verbose else "   gradfix explain --verbose")
        lines.extend(["", paint.dim(f"more: {hint}")])
    return "\n".join(line.rstrip() for line in lines) + "\n"


def render_changes(changes: Changes, layout: Layout) -> list[str]:
    """The lines that say what changed since the last good run; all of them where everything is asked for."""
    paint = _Paint(is_on=layout.is_coloured)
    items = list(change_lines(changes.items, None if layout.is_verbose else MAX_CHANGES))
    heading = _labelled("changed", [changes_heading(changes)], layout, paint, colour="dim")
    return ["", *heading, *_labelled("", items, layout, paint, hang=3)]


class _Paint:
    """Colours by what they mean; nothing where colour is off."""

    def __init__(self, *, is_on: bool) -> None:
        self._is_on = is_on

    def _sgr(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._is_on and text else text

    def strong(self, text: str) -> str:
        return self._sgr("1", text)

    def dim(self, text: str) -> str:
        return self._sgr("2", text)

    def bad(self, text: str) -> str:
        return self._sgr("1;31", text)

    def good(self, text: str) -> str:
        return self._sgr("32", text)

    def warn(self, text: str) -> str:
        return self._sgr("33", text)

    def place(self, text: str) -> str:
        return self._sgr("36", text)

    def belief(self, confidence: str, text: str) -> str:
        return self._sgr({CERTAIN: "1;32", LIKELY: "1;33"}.get(confidence, "1;35"), text)


def _headline(incident: Incident, layout: Layout, paint: _Paint) -> Iterator[str]:
    record = main_exception(incident)
    if record is not None and record.type:
        text = f"{record.type}: {record.message}" if record.message else record.type
        yield from _raised_at(record, layout)
        lines = wrap(one_line(text, 2 * layout.width - 8 if not layout.is_verbose else 4000), layout.width)
        yield from (paint.bad(line) for line in lines)
    elif record is not None:
        yield paint.bad("a traceback that is cut before its last line")
    elif incident.warnings:
        yield paint.warn(one_line(f"{incident.warnings[0].category}: {incident.warnings[0].message}", 2 * layout.width))
    elif incident.metrics:
        yield paint.warn(f"a training log of {len(incident.metrics)} rows without an exception")
    caught = incident.fact(CAUGHT)
    if caught is not None:
        yield from (paint.strong(line) for line in wrap(visible(str(caught.value)), layout.width))
    if incident.story is not None:
        for said in (*incident.story.says, *incident.story.odd[:2]):
            yield from (paint.strong(line) for line in wrap(visible(said), layout.width))
    elif len(incident.ranks) > 1:
        ranks = ", ".join(map(str, incident.ranks[:16])) + (", …" if len(incident.ranks) > 16 else "")
        yield paint.dim(f"seen in ranks {ranks}")
    others = sum(1 for other in incident.exceptions if other is not record and other.type)
    if others:
        yield paint.dim(f"and {others} more exception{'s' if others > 1 else ''} in its chain or after it")


def _raised_at(record: ExceptionRecord, layout: Layout) -> Iterator[str]:
    """What happened in the user's own names: their line, and that it raised."""
    frame = next((one for one in reversed(record.frames) if one.library is None), None)
    if frame is None:
        return
    place = f"{os.path.basename(frame.file.replace(chr(92), '/'))}:{frame.line}" if frame.line else frame.file
    code = f"`{one_line(frame.code.partition(chr(10))[0], layout.width // 2)}`" if frame.code else "your code"
    yield from wrap(f"{code} at {one_line(place, 80)} raised", layout.width)


def main_exception(incident: Incident) -> ExceptionRecord | None:
    """The exception that names the failure best: the last of the first chain."""
    named = [record for record in incident.exceptions if record.type]
    if not named:
        return incident.exceptions[0] if incident.exceptions else None
    chain = [named[0]]
    for record in named[1:]:
        if record.link in ("direct_cause", "during_handling"):
            chain.append(record)
        else:
            break
    return chain[0] if chain[-1].link == "direct_cause" else chain[-1]


def _finding(finding: Finding, layout: Layout, paint: _Paint, *, is_first: bool) -> Iterator[str]:
    yield ""
    yield from (paint.strong(line) for line in wrap(finding.title, layout.width))
    belief = f"{finding.confidence} ({min(finding.score, 0.99):.0%})" if finding.confidence != CERTAIN else "certain"
    yield f"{paint.place(finding.cause)}  {paint.belief(finding.confidence, belief)}"
    if finding.kind == "notice":
        yield paint.good("nothing is wrong: this needs no action")
    yield ""
    yield from _labelled("what", [finding.summary], layout, paint)
    for culprit in finding.culprits[: None if layout.is_verbose else 2]:
        yield from _culprit(culprit, layout, paint)
    yield from _why(finding.evidence, layout, paint)
    yield from _fixes(finding, layout, paint)
    for myth in finding.myths[: None if layout.is_verbose else 2]:
        yield from _labelled("not", [f"{myth.remedy}: {myth.why}"], layout, paint, colour="warn")
        if layout.is_verbose and myth.experiment:
            shown = f"experiment: gradfix rules myths {myth.experiment}"
            yield from _labelled("", [shown], layout, paint, colour="dim")
    if is_first and (layout.is_verbose or finding.confidence != CERTAIN):
        for other in finding.look_alikes[: None if layout.is_verbose else 2]:
            yield from _labelled("or", [f"{other.cause}: {other.decides}"], layout, paint, colour="dim")
        if finding.proves_not and (layout.is_verbose or finding.confidence not in (CERTAIN, LIKELY)):
            yield from _labelled("note", [finding.proves_not], layout, paint, colour="dim")


def _labelled(
    label: str, texts: Sequence[str], layout: Layout, paint: _Paint, *, colour: str = "", hang: int = 0
) -> Iterator[str]:
    """Texts wrapped beside a label in the left margin."""
    for index, text in enumerate(texts):
        tint = getattr(paint, colour) if colour else str
        room = max(layout.width - _LABEL, 24)
        for number, line in enumerate(wrap(visible(text), room, hang)):
            margin = paint.dim(f"{label:<{_LABEL}}") if index == 0 and number == 0 else " " * _LABEL
            yield margin + tint(line)


def _culprit(culprit: Culprit, layout: Layout, paint: _Paint) -> Iterator[str]:
    place = one_line(culprit.file, 200) + (f":{culprit.line}" if culprit.line else "")
    inside = f" in {one_line(culprit.function, 80)}" if culprit.function else ""
    why = f"  ({culprit.why})" if culprit.why else ""
    is_short = _LABEL + columns(place + inside + why) <= layout.width
    yield f"{paint.dim('where   ')}{paint.place(place)}{inside}{paint.dim(why) if is_short else ''}"
    if not is_short and why:
        yield " " * _LABEL + paint.dim(why.strip())
    if culprit.code:
        room = max(layout.width - _LABEL - 2, 20)
        yield from _neighbours(culprit.before, room, paint)
        first = visible(culprit.code.split("\n")[0])
        yield " " * (_LABEL + 2) + paint.strong(first[:room])
        start, end = culprit.mark or (0, len(first))
        if start < room and first:
            yield " " * (_LABEL + 2 + start) + paint.bad("^" * max(min(end, len(first), room) - start, 1))
        yield from _neighbours(culprit.after, room, paint)


def _neighbours(lines: Sequence[str], room: int, paint: _Paint) -> Iterator[str]:
    """The lines beside the guilty one, dimmed; blank ones at the ends are left out by their reader."""
    for line in lines:
        if line.strip():
            yield " " * (_LABEL + 2) + paint.dim(visible(line)[:room])


def _why(evidence: Sequence[Evidence], layout: Layout, paint: _Paint) -> Iterator[str]:
    shown = (
        evidence if layout.is_verbose else [one for one in evidence if one.id not in ("signature", *RANK_EVIDENCE)][:5]
    )
    if not shown:
        shown = evidence[:1]
    for index, one in enumerate(shown):
        label = "why" if index == 0 else ""
        sign = "-" if one.weight < 0 else "+"
        weight = f" {one.weight:+.1f}" if layout.is_verbose and one.weight else ""
        text = f"{sign} {one.says}  [{one.reads}{weight}]"
        yield from _labelled(label, [text], layout, paint, colour="dim" if one.weight < 0 else "", hang=2)


def _fixes(finding: Finding, layout: Layout, paint: _Paint) -> Iterator[str]:
    shown = finding.fixes if layout.is_verbose else finding.fixes[:3]
    for index, fix in enumerate(shown):
        label = "do" if index == 0 else ""
        lines = [f"{index + 1}. {fix.title}"]
        yield from _labelled(label, lines, layout, paint, colour="good", hang=3)
        if fix.patch and (index == 0 or layout.is_verbose):
            yield from _diff(fix.patch, layout, paint)
        if fix.command:
            yield from _labelled("", [f"   $ {fix.command}"], layout, paint, colour="strong")
        if fix.because and (layout.is_verbose or index == 0):
            yield from _labelled("", [f"   {fix.because}"], layout, paint, colour="dim", hang=3)


def _diff(patch: str, layout: Layout, paint: _Paint) -> Iterator[str]:
    """The changed lines of a patch with their files; all of it where everything is asked for."""
    room = max(layout.width - _LABEL - 3, 20)
    lines = patch.split("\n")[:-1]
    if not layout.is_verbose:
        lines = [one for one in lines if one[:1] in "+-@" and not one.startswith("---")]
    for number, line in enumerate(lines):
        if number == MAX_DIFF and not layout.is_verbose:
            yield " " * (_LABEL + 3) + paint.dim(f"{len(lines) - number} more lines")
            break
        tint = {"+": paint.good, "-": paint.bad}.get(line[:1], paint.dim)
        if line.startswith(("+++", "---", "@@")):
            tint = paint.place
        yield " " * (_LABEL + 3) + tint(visible(line)[:room])


def _rest(rest: Sequence[Finding], layout: Layout, paint: _Paint) -> Iterator[str]:
    shown = rest if layout.is_verbose else [one for one in rest if one.score >= _WORTH_NAMING][:3]
    if not shown:
        return
    names = ", ".join(f"{finding.cause} ({finding.score:.0%})" for finding in shown)
    yield ""
    yield from (paint.dim(line) for line in wrap(f"also possible: {names}", layout.width, 2))


def _unknown(unknown: Unknown, layout: Layout, paint: _Paint) -> Iterator[str]:
    yield ""
    yield paint.strong("the cause is not known")
    yield ""
    yield from _labelled("why", [unknown.why], layout, paint)
    for near in unknown.nearest:
        causes = ", ".join(near.causes[:3])
        yield from _labelled(
            "near",
            [f"{near.similarity:.0%} {one_line(near.message, 160)}  ({causes})"],
            layout,
            paint,
            colour="dim",
            hang=4,
        )
    if unknown.missing:
        yield from _labelled("missing", ["; ".join(unknown.missing)], layout, paint)
    if unknown.next_command:
        yield from _labelled("next", [unknown.next_command], layout, paint, colour="good")


def _environment(environment: Environment, layout: Layout, paint: _Paint) -> Iterator[str]:
    yield ""
    packages = ", ".join(f"{package.name} {package.version}" for package in environment.packages)
    gpus = ", ".join(gpu.name for gpu in environment.gpus or ()) or "no GPU seen"
    yield from _labelled("with", [f"{packages or 'no package seen'}; {gpus}"], layout, paint, colour="dim")
