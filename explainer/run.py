"""Runs the user's command once and explains its failure; traces it where the lines are open."""

from __future__ import annotations

import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from typing import Any

from explainer.catalog.catalog import Catalog
from explainer.errors import UnreadableInput
from explainer.ingest.source import LogReader
from explainer.ingest.text import read_text
from explainer.match.echo import is_echo_chain
from explainer.match.silent import silent_warnings
from explainer.model.environment import Environment
from explainer.model.finding import POSSIBLE
from explainer.model.incident import (
    CAUGHT,
    EARLY_CLIP,
    SEEN,
    TOLD_NO,
    ExceptionRecord,
    Fact,
    Incident,
    LogLine,
    MetricRow,
)
from explainer.model.repair import Run
from explainer.model.report import Report
from explainer.model.trace import CROSSED, NOT_FINITE
from explainer.model.verification import Failure, ProcessReport, Unowned
from explainer.rank_report import Reading, explain_job, explain_standing
from explainer.ranks import tell_ranks
from explainer.source.network.ownership import chooses_parts
from explainer.source.setting.setting import kind_of
from explainer.source.setting.word import NO
from explainer.verification.command import Ended, OnOutput, run_command
from explainer.verification.departures import departures_told
from explainer.verification.given_up import GivenUp, caught_in_steps, caught_last, dropped, given_up, left_out_of_loss
from explainer.verification.idle_schedule import with_idle_schedules
from explainer.verification.judge import ends_unseen, place_of, silent_faults
from explainer.verification.left_over import caught_instead
from explainer.verification.live_report import live_environment, read_reports, with_live_facts
from explainer.verification.rank_file import read_ranks
from explainer.verification.refused import with_refused
from explainer.verification.report_folder import ReportFolder, ask_for_stacks, is_elsewhere, open_folder, settle
from explainer.verification.stream import OnStep, waiting
from explainer.verification.traced import GROWTH, with_trace
from explainer.verification.traced_line import is_silent_fault, lines_of
from explainer.verification.unowned import unowned_of, with_unowned
from explainer.verification.verify import Watch, verify_command
from explainer.workflow import explain_incident, plan_report, program_of

ASSERTED = "device/device-side-assert"
MISMATCH = "shape/batch-mismatch"
NOT_FROM_MODEL = "no-graph/loss-not-from-model"
# The families of causes that happen in the flow of values, where a trace sees them.
TRACEABLE = frozenset(
    ("inplace", "no-graph", "backward", "nan", "checkpoint", "compile", "shape/index-out-of-range", ASSERTED)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is run and how far a repair may go.

    `report_dir` collects the reports of all ranks of a job; after `limit` seconds the run is taken to hang, and is ended.
    """

    command: tuple[str, ...]
    root: str
    catalog: Catalog
    environment_of: Callable[[Incident], Environment | None] = lambda _: None
    watch: Watch = field(default_factory=Watch)
    unsafe: bool = False
    keep_unproved: bool = False
    report_dir: str | None = None
    limit: float | None = None


def run_program(job: Job, on_output: OnOutput, *, is_shown: bool = True, on_step: OnStep | None = None) -> Run:
    """Run the command once, its output passed to `on_output` as it comes, and explain its failure.

    Raises:
        CannotStart: there is no such program.
        Stopped: it is not shown, and `job.watch.is_stopped` said so.
    """
    folder = open_folder(job.report_dir, job.command)
    reader = _Reader()
    deadline = None if job.limit is None else time.time() + job.limit
    try:
        options = {
            "folder": folder.path,
            "mode": "run",
            "told": on_step is not None,
            "launch": folder.launch,
            "deadline": deadline,
        }
        environment = live_environment(options, dict(os.environ))
        on_wait, at_end = waiting(folder.path, on_step, None if is_shown else job.watch.is_stopped)

        def pass_on(stream: int, data: bytes) -> None:
            on_output(stream, data)
            reader.feed(stream, data)

        ended = run_command(
            job.command, environment=environment, folder=job.root, on_output=pass_on, timeout=job.limit, is_shown=is_shown,
            on_wait=on_wait, on_late=lambda: ask_for_stacks(folder.path, deadline or 0.0),
        )  # fmt: skip
        at_end()
        folder.write(ended=time.time(), status=ended.status, late=deadline if ended.is_late else None)
        if ended.status or ended.is_late:
            settle(folder)
        return _explained(job, folder, ended, reader.close(), deadline if ended.is_late else None)
    finally:
        folder.leave()


MIN_MESSAGE, MAX_MESSAGE = 20, 200  # characters of a message by which it is known in a line
_EXITS = frozenset({"Exit", "SystemExit", "Abort"})  # by which a command line ends, after what it has caught
_HANDED_ON = re.compile(r"Caught \w+ in \w+")
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")
LATE = 124  # what `timeout` of coreutils ends with
MAX_TRACED = 400  # steps of a run that ended well, with values that are not finite


def _explained(job: Job, folder: ReportFolder, ended: Ended, incidents: list[Incident], late_at: float | None) -> Run:
    """The run with its report, read from what was printed and from what its processes have left in the folder."""
    processes = read_reports(folder.path)
    status = (ended.status or LATE) if ended.is_late else ended.status
    silent = silent_faults(processes) if status == 0 else ()
    told = with_silent(incidents, silent) if status or silent else warned_of(incidents, processes, job.catalog)
    told = with_idle_schedules(with_early_clips(told, processes), processes)
    told = with_refused(told, processes, silent) if silent else told
    if not status:
        told = with_left_out(told, processes, job.root)
    report = _report_of_job(job, folder, incidents, late_at) if status else None
    if report is None:
        report = explain_run(told, _that_failed(processes, ended, status), job) if status or told else None
    return Run(
        status=status, seconds=ended.seconds, report=report, processes=processes, is_asked=ended.is_asked,
        is_elsewhere=folder.is_shared and status != 0 and is_elsewhere(folder),
    )  # fmt: skip


def with_left_out(incidents: list[Incident], processes: Sequence[ProcessReport], root: str) -> list[Incident]:
    """What was printed by a program that ended well, with the trainable parameters that belong to no optimizer, if any do not."""
    is_renewed = any(one.renewed for one in processes)  # it says more of what a forward puts into its module
    unowned = () if is_renewed else left_out(processes, root)
    return [with_unowned(incidents[-1] if incidents else Incident(), unowned)] if unowned else incidents


def _that_failed(processes: Sequence[ProcessReport], ended: Ended, status: int) -> Sequence[ProcessReport]:
    """The processes with the failures that may have ended the run.

    Of a run that ended well those that nobody saw; of one that was killed or ran out of time none that the program had dealt with.
    """
    if not status:
        unseen = ends_unseen(processes)
        return (
            [replace(one, failures=tuple(each for each in one.failures if each in unseen)) for one in processes]
            if unseen
            else ()
        )
    if not (ended.signal_name or ended.is_late):
        return processes
    return [replace(one, failures=tuple(each for each in one.failures if not each.is_handled)) for one in processes]


def _report_of_job(job: Job, folder: ReportFolder, incidents: list[Incident], late_at: float | None) -> Report | None:
    """The report of a job of several ranks, or of a program that hung; None where what was printed tells all there is."""
    told = tell_ranks(read_ranks(folder.path), job.catalog, late_at=late_at, printed=incidents)
    if told is None:
        return explain_standing(folder.path) if late_at is not None else None
    return explain_job(told, incidents, Reading(catalog=job.catalog, root=job.root, environment_of=job.environment_of))


def left_out(processes: Sequence[ProcessReport], root: str) -> tuple[Unowned, ...]:
    """Trainable parameters that belong to no optimizer, where the program does not choose: a group is empty, or it names no part."""
    found = unowned_of(processes)
    if not found or any(one.empty or one.is_lost or one.is_plain for one in found):
        return found
    program = program_of(root, [one.file for one in found if one.file])
    return () if not program.order or chooses_parts(program) else found


def warned_of(incidents: Sequence[Incident], processes: Sequence[ProcessReport], catalog: Catalog) -> list[Incident]:
    """What was printed by a program that ended well, where a warning in it tells that it trains otherwise than meant."""
    uses = {one for process in processes for one in process.uses}
    return [one for one in incidents if silent_warnings(one, catalog, uses)]


def with_silent(incidents: list[Incident], silent: Sequence[str]) -> list[Incident]:
    """What was printed, with what the processes were seen to do wrong without a word, as lines and metrics of the log."""
    if not silent:
        return incidents
    base = incidents[-1] if incidents else Incident()
    lines = tuple(LogLine(text=f"{SEEN}{one}") for one in silent)
    rows = tuple(MetricRow(values=(("grad_norm", math.nan),)) for one in silent if "not finite" in one)
    return [replace(base, log=(*base.log, *lines), metrics=(*base.metrics, *rows))]


def with_early_clips(incidents: list[Incident], processes: Sequence[ProcessReport]) -> list[Incident]:
    """What was printed, with the lines that clipped gradients too early: what diverges may do so for want of the limit."""
    places = {place_of(clip) for one in processes for clip in one.early_clips}
    facts = tuple(Fact(name=EARLY_CLIP, value=one) for one in sorted(places))
    return [replace(one, facts=(*one.facts, *facts)) for one in incidents] if facts else incidents


class _Reader:
    """Puts the two streams together line by line, as they come."""

    def __init__(self) -> None:
        self._log = LogReader()
        self._open = {1: b"", 2: b""}
        self._is_text = True

    def feed(self, stream: int, data: bytes) -> None:
        whole, end, rest = (self._open[stream] + data).rpartition(b"\n")
        self._open[stream] = rest if len(rest) < 1 << 20 else b""
        self._take(whole + end)

    def _take(self, data: bytes) -> None:
        if data and self._is_text:
            try:
                self._log.feed(data)
            except UnreadableInput:  # a program may print what it likes; then there is no text to explain
                self._is_text = False

    def close(self) -> list[Incident]:
        self._take(b"".join(rest + b"\n" for rest in self._open.values() if rest))
        try:
            return self._log.close()
        except UnreadableInput:
            return []


def explain_run(incidents: Sequence[Incident], processes: Sequence[ProcessReport], job: Job) -> Report | None:
    """The report of the failure that ended a run: of what was printed, else of what a process noted and did not print."""
    failures = [failure for one in processes for failure in one.failures if failure.text]
    printed = [_with_facts(one, failures) for one in incidents if one.exceptions]
    noted = [with_live_facts(one, failure) for failure in reversed(failures) for one in read_text(failure.text)]
    caught = [each for one in reversed(printed) for each in caught_instead(one, processes, job.root)]
    tries = [*map(_of_failure, caught[:1]), *reversed(printed), *noted, *reversed(incidents)]
    reports = [explain_incident(_asked(one, job), job.environment_of(one), job.catalog) for one in tries[:6]]
    # A launcher's own exception has a cause that is known: it only says that what it started has failed.
    own = [one for one in reports if not is_echo_chain(one.incident.exceptions, job.catalog)]
    reports = own if any(one.incident.exceptions for one in own) else reports
    best = next((one for one in reports if one.findings), reports[0] if reports else None)
    return plan_report(best, job.catalog, job.root, _files_of(job), _variables_of(job)) if best is not None else None


def _asked(incident: Incident, job: Job) -> Incident:
    """The incident with the options of the command that were given a word for no: a program may read them as yes."""
    words = list(job.command)
    pairs = [one.partition("=")[::2] for one in words if one.startswith("-") and "=" in one]
    pairs += [(one, after) for one, after in pairwise(words) if one.startswith("-") and "=" not in one]
    told = tuple(Fact(name=TOLD_NO, value=name) for name, value in pairs if value.lower() in NO)
    return replace(incident, facts=(*incident.facts, *told))


def _files_of(job: Job) -> list[str]:
    """The scripts and configuration files that the command names: a message that was printed without its traceback names no file."""
    words = [each for one in job.command for each in (one, one.partition("=")[2])]
    paths = (os.path.join(job.root, one) for one in words if one.endswith(".py") or kind_of(one) is not None)
    return [path for path in dict.fromkeys(paths) if os.path.isfile(path)]


def _variables_of(job: Job) -> Mapping[str, str]:
    """The environment in which the command runs, with what `env FREEZE=0 python train.py` sets in it."""
    given = [one for one in takewhile(lambda one: not one.endswith(".py"), job.command) if _VARIABLE.match(one)]
    return {**os.environ, **dict(one.split("=", 1) for one in given)}


def _with_facts(incident: Incident, failures: Sequence[Failure]) -> Incident:
    """An incident that was printed, with what was seen live at that failure: its frames too, where only the message was printed."""
    said = {_words(record) for record in incident.exceptions}
    # What a program raises of one that it had caught says nothing of where that came from.
    inner = said - {_words(record) for record in incident.exceptions[1:] if _is_raised_again(record)}
    said = inner if inner & {_words(failure) for failure in failures} else said
    # What a worker raised was seen there, and is only handed on by the process that waits for it.
    last_first = failures[::-1]
    for failure in sorted(last_first, key=lambda one: _HANDED_ON.match(one.message) is not None):
        if _words(failure) in said:
            if not any(record.frames for record in incident.exceptions):
                whole = next(iter(read_text(failure.text)), None)
                incident = replace(incident, exceptions=whole.exceptions) if whole is not None else incident
            return with_live_facts(incident, failure)
    return incident


def _words(one: ExceptionRecord | Failure) -> tuple[str, str]:
    """By what a failure that was printed and one that was noted are known as the same."""
    return one.type.rpartition(".")[2], one.message.strip()[:200]


def _is_raised_again(record: ExceptionRecord) -> bool:
    """Whether the program raises it by a line of its own, for another one: `raise RuntimeError("training failed") from error`."""
    last = record.frames[-1] if record.frames else None
    is_own = last is not None and last.library is None and (last.code or "").lstrip().startswith("raise ")
    return is_own and record.link in ("direct_cause", "during_handling")


def steps_so_far(processes: Sequence[ProcessReport]) -> tuple[tuple[str, int], ...]:
    """How many steps each optimizer had made at the failure: the most of any process."""
    most: dict[str, int] = {}
    for process in processes:
        for name, count in process.steps:
            most[name] = max(most.get(name, 0), count)
    return tuple(most.items())


def first_steps(run: Run, job: Job) -> tuple[tuple[str, int], ...]:
    """A few steps of each optimizer of a run that ended well: also of those that begin where an earlier stage has ended.

    Where values stopped being finite, all of a short run: that may have come late. Where parameters came to train later, as far as
    that.
    """
    cause = run.report.findings[0].cause if run.report is not None and run.report.findings else ""
    most = MAX_TRACED if cause.startswith("nan/") else job.watch.steps
    late = {one.optimizer: min(one.at + most, MAX_TRACED) for each in run.processes for one in each.unfrozen}
    return tuple((name, min(count, max(most, late.get(name, 0)))) for name, count in steps_so_far(run.processes))


def sharpen(job: Job, run: Run, tell: Callable[[str], None], on_output: OnOutput | None = None) -> Run:
    """The run with the lines that a traced run of the same command sees, where its failure is one that a trace can tell.

    A run that ended well is traced for a few steps: for writes that autograd does not see. The traced run harms nothing: it
    is watched as a verification is, and ends once it is past the place of the failure.
    """
    if run.is_asked or (run.report is not None and run.report.findings and not _is_traceable(run.report)):
        return run
    tell("tracing: the same command again, each operation watched")
    is_open = run.report is None or not run.report.findings
    past = steps_so_far(run.processes) if run.status else first_steps(run, job)
    watch = replace(job.watch, past=past, trace=True, caught=is_open)
    proof = verify_command(job.command, job.root, watch, on_output)
    incident = _traced(run, proof.processes, job.root)
    if incident is None:
        if run.report is None and not run.status:
            for one in departures_told(proof.processes, job.root):
                tell(one)
        return run
    report = explain_incident(_asked(incident, job), job.environment_of(incident), job.catalog)
    if not report.findings and gives_up(incident):
        row = MetricRow(values=(("grad_norm", math.nan),))  # which the program's own words do not say
        incident = replace(incident, metrics=(*incident.metrics, row))
        report = explain_incident(_asked(incident, job), job.environment_of(incident), job.catalog)
    report = plan_report(report, job.catalog, job.root, _files_of(job), _variables_of(job))
    return replace(run, report=report) if report.findings else run


def gives_up(incident: Incident) -> bool:
    """Whether the program itself ended the run, by a line that raises, after values that a trace saw stop being finite."""
    last = incident.exceptions[-1] if incident.exceptions else None
    frame = last.frames[-1] if last is not None and last.frames else None
    if frame is None or frame.library is not None or not (frame.code or "").lstrip().startswith("raise "):
        return False
    return any(one.kind == NOT_FINITE for one in incident.traced)


def _is_traceable(report: Report) -> bool:
    cause = report.findings[0].cause
    return bool({cause, cause.partition("/")[0]} & TRACEABLE) or _warns_elsewhere(report)


def _warns_elsewhere(report: Report) -> bool:
    """Whether all there is of a failure is a warning about shapes whose place is a library's: which line called it is open."""
    incident = report.incident
    is_of_shapes = report.findings[0].cause == MISMATCH and not incident.exceptions
    return is_of_shapes and any("target size" in one.message and one.library for one in incident.warnings)


def _raised(incident: Incident, processes: Sequence[ProcessReport]) -> Incident | None:
    """The exception of which a line was printed by itself, as the traced run saw an operation raise it."""
    for failure in (each for one in processes for each in reversed(one.failures)):
        first = failure.message.strip().split("\n")[0]
        if len(first) >= MIN_MESSAGE and any(first[:MAX_MESSAGE] in line.text for line in incident.log):
            whole = next(iter(read_text(failure.text)), None)
            if whole is not None:
                return with_live_facts(replace(incident, exceptions=whole.exceptions), failure)
    return None


def _before_the_kernel(incident: Incident, processes: Sequence[ProcessReport]) -> Incident | None:
    """The exception that a traced run raised at the call itself, for a kernel that asserts later and elsewhere; None where it did not."""
    for failure in (each for one in processes for each in reversed(one.failures)):
        whole = next(iter(read_text(failure.text)), None)
        if whole is not None and whole.exceptions and "device-side assert" not in failure.message:
            return with_live_facts(replace(incident, exceptions=whole.exceptions), failure)
    return None


def seen_without_a_word(processes: Sequence[ProcessReport], root: str) -> Iterator[Incident]:
    """What a traced run saw that PyTorch or the program lets through: of each process by itself."""
    for one in processes:
        if is_silent_fault(one.traced):
            yield with_trace(Incident(), one.traced)
        elif one.traced.get("stepless"):
            yield from _swallowed(one)
        else:
            yield from map(_left_out, caught_in_steps([one], root))


def _caught_before(processes: Sequence[ProcessReport], root: str) -> Iterator[Incident]:
    """What a program left out training steps for, of each process by itself, whatever became of it afterwards."""
    for one in processes:
        for each in given_up([one], root, stepless=True):
            yield _left_out(each)


def _missing_term(processes: Sequence[ProcessReport], root: str) -> Incident | None:
    """What a program caught while it put its loss together: nothing was left in the sum that trains."""
    missing = next((each for one in processes for each in left_out_of_loss(one, root)), None)
    if missing is None:
        return None
    return _with_fact(_of_failure(missing), CAUGHT, "the program caught this, and left the term out of its loss")


def _left_over(incident: Incident, processes: Sequence[ProcessReport], root: str) -> Incident | None:
    """What a program caught in the step that failed for want of a loss: what torch raises below its lines is noted by a trace alone."""
    caught = next(caught_instead(incident, processes, root), None)
    if caught is None:
        return None
    return _with_fact(_of_failure(caught), CAUGHT, "the program caught this, and went on with what was left")


def _swallowed(process: ProcessReport) -> Iterator[Incident]:
    """The exception that operations raised again and again, of a process that made no step: each batch is skipped for it."""
    raised = Counter((one.type, one.message) for one in process.failures if one.text)
    most = next(iter(raised.most_common(1)), None)
    if most is not None and most[1] > 1:
        failure = next(one for one in process.failures if (one.type, one.message) == most[0] and one.text)
        yield _with_fact(
            _of_failure(failure), CAUGHT, f"the program caught this at least {most[1]} times, and made no step"
        )


def _left_out(one: GivenUp) -> Incident:
    """The incident of what a program caught, and left batches out for."""
    told = with_silent([_of_failure(one.failure)], [one.says])[0]
    return _with_fact(told, CAUGHT, one.caught)


def _with_fact(incident: Incident, name: str, value: str) -> Incident:
    return replace(incident, facts=(*incident.facts, Fact(name=name, value=value)))


def _of_failure(failure: Failure) -> Incident:
    """The incident of an exception that a process noted, with what was seen live."""
    return with_live_facts(next(iter(read_text(failure.text)), Incident()), failure)


def _traced(run: Run, processes: Sequence[ProcessReport], root: str) -> Incident | None:
    """The incident of a run with what was traced; None where the traced run saw nothing, or another failure."""
    incident = run.report.incident if run.report is not None else None
    if (
        incident is not None
        and run.report is not None
        and run.report.findings[:1]
        and run.report.findings[0].cause == ASSERTED
    ):
        return _before_the_kernel(incident, processes)
    if incident is not None and incident.exceptions:
        cause = run.report.findings[0].cause if run.report is not None and run.report.findings else ""
        missing = _missing_term(processes, root) if cause == NOT_FROM_MODEL else None
        missing = missing or _left_over(incident, processes, root)
        traced = missing or _with_facts(incident, [failure for one in processes for failure in one.failures])
        if traced.traced or any(one.name in (GROWTH, CAUGHT) for one in traced.facts):
            return traced
        # An exception without a known cause may be what came of others that the program had caught.
        if run.report is not None and run.report.findings:
            return None
        beside = map(_left_out, dropped(processes, root, of_all=False))
        caught = next(_caught_before(processes, root), None) or next(beside, None)
        is_exit = incident.exceptions[-1].type.rpartition(".")[2] in _EXITS
        return caught or (_ended_by(processes, root) if is_exit else None)
    raised = _raised(incident, processes) if incident is not None else None
    if raised is not None:
        return raised
    if incident is None:
        return next(seen_without_a_word(processes, root), None) or (_ended_by(processes, root) if run.status else None)
    kinds = {CROSSED} if run.report is not None and run.report.findings and _warns_elsewhere(run.report) else None
    seen = next((one.traced for one in processes if _tells(one.traced, kinds)), None)
    if seen is not None:
        return with_trace(incident, seen)
    # What a program printed of batches that it left out need not be a word of why, nor what it printed of losses that it has none of.
    findings = run.report.findings if run.report is not None else ()
    is_guess = bool(findings) and findings[0].confidence == POSSIBLE and not any(one.steps for one in processes)
    is_open = run.status != 0 and (not findings or is_guess)
    return next(seen_without_a_word(processes, root), None) or _ended_by(processes, root) if is_open else None


def _ended_by(processes: Sequence[ProcessReport], root: str) -> Incident | None:
    """What a program caught last before it ended with a status of its own: `except Exception: sys.exit(1)`."""
    last = next(caught_last(processes, root), None)
    if last is None:
        return None
    return _with_fact(_of_failure(last), CAUGHT, "the program caught this, and ended with a status of its own")


def _tells(traced: Mapping[str, Any], kinds: Collection[str] | None) -> bool:
    """Whether a trace has a line, of these kinds where only some would tell of the failure."""
    return any(kinds is None or one.kind in kinds for one in lines_of(traced))
