"""`gradfix fix`: explains a log, shows the edits that cure it as diffs, applies the one that is asked for."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field, replace
from typing import Any

from explainer.cli.options import ExplainOptions
from explainer.cli.screen import is_coloured, is_terminal
from explainer.errors import UsageError
from explainer.fix.choice import Choice, choose, list_choices
from explainer.model.journal import Record, Refused
from explainer.model.report import Report
from explainer.render.mask import mask_text
from explainer.render.record import plain_record
from explainer.render.visible import one_line

DONE, NOTHING, REFUSED = 0, 1, 4
SCHEMA = "gradfix.fix/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class FixOptions:
    """The arguments of `gradfix fix`; how the log is read and explained is `explain`."""

    file: str
    is_applied: bool = False
    allow_unsafe: bool = False
    fix: str | None = None
    cause: str | None = None
    root: str | None = None
    explain: ExplainOptions = field(default_factory=ExplainOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What there is to print: the edits, the one that is or would be applied, and what came of it."""

    report: Report
    choices: list[Choice]
    chosen: Choice | Refused | None
    done: Record | Refused | None = None

    @property
    def status(self) -> int:
        if not self.choices:
            return NOTHING
        return REFUSED if isinstance(self.done, Refused) else DONE


def run_fix(options: FixOptions) -> int:
    """Plan, show, apply; the exit status: 0 shown or done, 1 nothing to fix, 4 refused."""
    outcome = _carry_out(options)
    text = _json(outcome, options) if options.explain.format == "json" else _text(outcome, options)
    sys.stdout.write(text)
    sys.stdout.flush()
    if isinstance(outcome.done, Refused) and outcome.status == REFUSED:
        print(f"gradfix: refused: {one_line(outcome.done.reason, 600)}", file=sys.stderr)
    elif outcome.status == NOTHING:
        print(f"gradfix: nothing to fix: {one_line(_why_nothing(outcome, options), 600)}", file=sys.stderr)
    return outcome.status


def _carry_out(options: FixOptions) -> _Outcome:
    from explainer.catalog.bundle import load_catalog
    from explainer.cli.explain import Environments, read_input
    from explainer.workflow import apply, plan

    root = os.path.realpath(options.root or os.getcwd())
    if not os.path.isdir(root):
        raise UsageError(f"--root {root}: no such folder")
    catalog = load_catalog(options.explain.knowledge)
    incident = read_input(options.file, options.explain)[-1]
    report = plan(incident, Environments(options.explain).of(incident), catalog, root=root)
    choices = list(list_choices(report, fix=options.fix, cause=options.cause))
    _check_names(report, options)
    if not choices:
        return _Outcome(report=report, choices=choices, chosen=None)
    chosen = choose(choices, is_named=options.fix is not None, allow_unsafe=options.allow_unsafe)
    if not options.is_applied or isinstance(chosen, Refused):
        return _Outcome(report=report, choices=choices, chosen=chosen, done=chosen if options.is_applied else None)  # type: ignore[arg-type]
    command = f"gradfix fix {options.file} --apply"
    done = apply(chosen.fix, cause=chosen.finding.cause, root=root, command=command)
    if isinstance(done, Record):
        _remember(done, report, root)
    return _Outcome(report=report, choices=choices, chosen=chosen, done=done)


def _remember(record: Record, report: Report, root: str) -> None:
    from explainer import memory
    from explainer.cli.explain import tell_of_memory

    _, sightings = memory.recall_failures([report], root, way="fix")
    memory.note(sightings)
    memory.note_fix(record, report, way="fix")
    tell_of_memory()


def _check_names(report: Report, options: FixOptions) -> None:
    causes = [finding.cause for finding in report.findings]
    if options.cause and not any(options.cause in (one, one.partition("/")[2]) for one in causes):
        raise UsageError(f"--cause {options.cause}: not found here; there are {', '.join(causes) or 'none'}")
    fixes = [fix.id for finding in report.findings for fix in finding.fixes]
    if options.fix and options.fix not in fixes:
        raise UsageError(f"--fix {options.fix}: not found here; there are {', '.join(dict.fromkeys(fixes)) or 'none'}")


def _text(outcome: _Outcome, options: FixOptions) -> str:
    colour = is_coloured(options.explain.color)
    if isinstance(outcome.done, Record):
        assert isinstance(outcome.chosen, Choice)
        return _applied(outcome.done, outcome.chosen, options, is_coloured=colour)
    if isinstance(outcome.done, Refused):
        return _shown_diff(outcome.done.diff, options, is_coloured=colour)
    text = "\n".join(_shown(one, options, is_coloured=colour) for one in outcome.choices)
    if outcome.choices:
        text += f"\n{_next(outcome.chosen, options)}\n"
    return text


def _shown(choice: Choice, options: FixOptions, *, is_coloured: bool) -> str:
    """An edit: what it cures, whether it may be applied unasked, its diff."""
    fix, finding = choice.fix, choice.finding
    belief = finding.confidence if finding.confidence == "certain" else f"{finding.confidence} {finding.score:.0%}"
    lines = [f"{finding.cause} ({belief})", f"fix {fix.id} ({fix.applicability}): {fix.title}"]
    if fix.because:
        lines.append(f"note: {fix.because}")
    text = "".join(f"{one_line(_masked(line, options), 400)}\n" for line in lines)
    return text + _shown_diff(fix.patch or "", options, is_coloured=is_coloured)


def _shown_diff(diff: str, options: FixOptions, *, is_coloured: bool) -> str:
    from explainer.render.difference import render_diff

    return render_diff(_masked(diff, options), is_terminal=is_terminal(sys.stdout), is_coloured=is_coloured)


def _next(chosen: Choice | Refused | None, options: FixOptions) -> str:
    """What to type next."""
    if isinstance(chosen, Choice):
        return (
            f"apply {chosen.fix.id}: gradfix fix {options.file} --apply{f' --fix {options.fix}' if options.fix else ''}"
        )
    return f"none is applied unasked: {chosen.reason}" if chosen else ""


def _applied(record: Record, choice: Choice, options: FixOptions, *, is_coloured: bool) -> str:
    names = ", ".join(os.path.relpath(one.file, record.root) for one in record.files)
    head = f"{choice.finding.cause}: {choice.fix.title}\n"
    tail = f"applied {record.fix} to {names}\nundo: gradfix undo {record.id}\n"
    return head + _shown_diff(choice.fix.patch or "", options, is_coloured=is_coloured) + tail


def _why_nothing(outcome: _Outcome, options: FixOptions) -> str:
    findings = outcome.report.findings
    if not findings:
        return outcome.report.unknown.why if outcome.report.unknown else "the failure is not recognised"
    advice = [fix.title for finding in findings[:1] for fix in finding.fixes]
    where = f"no line of the program under {options.root or '.'} that an edit cures"
    return f"{findings[0].cause}: {where}; by hand: {'; or '.join(advice[:2]) or 'see gradfix explain'}"


def _json(outcome: _Outcome, options: FixOptions) -> str:
    from explainer.render.json import render_json

    status = {NOTHING: "nothing", REFUSED: "refused"}.get(outcome.status, "applied" if outcome.done else "shown")
    reason = outcome.done.reason if isinstance(outcome.done, Refused) else None
    if outcome.status == NOTHING:
        reason = _why_nothing(outcome, options)
    plain: dict[str, Any] = {
        "schema": SCHEMA,
        "status": status,
        "reason": reason,
        "fixes": [_plain(one, options) for one in outcome.choices],
        "applied": plain_record(outcome.done) if isinstance(outcome.done, Record) else None,
    }
    return render_json(plain)


def _plain(choice: Choice, options: FixOptions) -> dict[str, Any]:
    from explainer.render.json import to_plain

    fix = replace(choice.fix, patch=_masked(choice.fix.patch or "", options))
    return {"cause": choice.finding.cause, "confidence": choice.finding.confidence, **to_plain(fix)}


def _masked(text: str, options: FixOptions) -> str:
    return mask_text(text) if options.explain.mask else text
