"""Runs and repairs for the command line: the program's output first, what gradfix says after it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from explainer.catalog.bundle import load_catalog
from explainer.cli.ending import ended_by_signals
from explainer.cli.screen import is_coloured, width
from explainer.errors import UsageError
from explainer.model.environment import Environment
from explainer.model.event import Event
from explainer.model.incident import Incident
from explainer.model.repair import FAILED, PASSED, SUSPECT, VERIFIED, Repair, Run
from explainer.model.report import Report
from explainer.repair import repair
from explainer.run import Job, run_program, sharpen
from explainer.verification.command import ERR, show, signal_name
from explainer.verification.reach import why_unwatched
from explainer.verification.verify import TIMEOUT, Watch

_ASKED_TO_END = ("SIGINT", "SIGTERM", "SIGHUP")  # by a person or a scheduler: no failure of the program


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of `gradfix run`."""

    command: tuple[str, ...]
    fix: bool
    unsafe: bool
    trace: bool
    keep_unproved: bool
    dry_run: bool
    steps: int
    timeout: float | None
    report_dir: str | None
    root: str | None
    format: str
    probe: bool
    knowledge: str | None
    verbose: bool = False


def run_and_explain(options: RunOptions) -> int:
    """Run the program, explain, repair where asked; its exit status, or 0 where it was repaired and proved."""
    job = Job(
        command=options.command,
        root=os.path.realpath(options.root or os.getcwd()),
        catalog=load_catalog(options.knowledge),
        environment_of=_prober(is_wanted=options.probe),
        watch=Watch(steps=options.steps, timeout=TIMEOUT if options.timeout is None else options.timeout),
        unsafe=options.unsafe,
        keep_unproved=options.keep_unproved,
        report_dir=options.report_dir,
        limit=None if options.fix else options.timeout,
    )
    if options.dry_run and not options.fix:
        raise UsageError("--dry-run is for --fix: without it no file of the project is changed")
    if options.dry_run:
        from explainer.rehearsal import rehearsed

        with ended_by_signals(), rehearsed(job) as copied:
            return _carry_out(copied, options)
    return _carry_out(job, options)


def _carry_out(job: Job, options: RunOptions) -> int:
    is_json = options.format == "json"

    def on_output(stream: int, data: bytes) -> None:
        show(ERR if is_json else stream, data)

    with ended_by_signals():
        if options.fix:
            done = repair(job, on_output, _tell)
        else:
            run = run_program(job, on_output)
            run = sharpen(job, run, _tell) if options.trace and not run.is_elsewhere else run
            word = FAILED if run.status else PASSED if run.report is None else SUSPECT
            done = Repair(status=word, exit_status=run.status, report=run.report)
            if run.is_elsewhere and not is_json:
                return _point_at(job, run)
    done = replace(done, is_rehearsed=options.dry_run)
    status = _finish(done, job, options)
    unwatched = why_unwatched(job.command)
    if unwatched is not None and done.status != PASSED:
        _tell(unwatched)
    return status


def _point_at(job: Job, run: Run) -> int:
    """One line where another node tells the whole: as many cards as nodes help nobody."""
    says = (
        run.report.incident.story.says[0]
        if run.report is not None and run.report.incident.story
        else _ending(run.status)
    )
    _tell(f"{says}; rank 0's node tells the rest, and `gradfix explain {job.report_dir}`")
    return run.status


def _finish(done: Repair, job: Job, options: RunOptions) -> int:
    """Print what is to be said, and remember it; the exit status."""
    from explainer import memory
    from explainer.render.repair import empty_report
    from explainer.workflow import present

    report = present(done.report, root=job.root, mask=True) if done.report is not None else None
    sightings: list[Event] = []
    if done.status != PASSED and signal_name(done.exit_status) not in _ASKED_TO_END and not done.is_rehearsed:
        told = report or empty_report()
        told = memory.with_changes(told, job.command, job.root, job.catalog, is_probed=options.probe)
        (told,), sightings = memory.recall_failures([told], job.root, way="run")
        report = told if report is not None or told.changes is not None else None
    done = replace(done, report=report)
    if options.format == "json":
        from explainer.render.json import render_json

        sys.stdout.write(render_json(replace(done, report=report or empty_report())))
    elif done.status != PASSED:
        _card(report, done.exit_status, is_verbose=options.verbose)
        from explainer.render.repair import render_repair

        sys.stderr.write(render_repair(done))
    if not done.is_rehearsed:
        _remember(done, sightings, job, is_probed=options.probe)
    return 0 if done.status == VERIFIED else done.exit_status


def _remember(done: Repair, sightings: list[Event], job: Job, *, is_probed: bool) -> None:
    from explainer import memory

    if done.status == PASSED:
        memory.note_good_run(job.command, job.root, is_probed=is_probed)
    memory.note(sightings)
    memory.note_repair(done, job.root)
    why = memory.why_unusable()
    if why is not None:
        _tell(why)


def _card(report: Report | None, status: int, *, is_verbose: bool) -> None:
    from explainer.render.terminal import Layout, render_changes, render_terminal

    layout = Layout(width=width(), is_coloured=is_coloured("auto", sys.stderr), is_verbose=is_verbose)
    if report is None or not (report.findings or report.incident.exceptions or report.incident.story):
        if status:
            _tell(f"{_ending(status)}, and nothing that it printed tells why")
        if report is not None and report.changes is not None:
            sys.stderr.write("\n".join(render_changes(report.changes, layout)) + "\n")
        return
    sys.stderr.write("\n" + render_terminal(report, layout))


def _ending(status: int) -> str:
    """How the program ended, in words."""
    name = signal_name(status)
    if name == "SIGKILL":
        return "the program was ended by SIGKILL: by the system where memory ran out, or by a person or scheduler"
    return f"the program was ended by {name}" if name else f"the program ended with exit status {status}"


def _prober(*, is_wanted: bool) -> Callable[[Incident], Environment | None]:
    """Probes the environment once, for the first incident that asks."""
    known: list[Environment] = []

    def environment_of(incident: Incident) -> Environment | None:
        if not is_wanted:
            return None
        if not known:
            from explainer.probe.environment import probe_environment

            known.append(probe_environment(None, incident))
        return known[0]

    return environment_of


def _tell(line: str) -> None:
    print(f"gradfix: {line}", file=sys.stderr, flush=True)
