"""Runs the user's command, explains its failure, and with leave tries fixes until one is verified.

A fix is applied, the command is run again for a few steps under watch, and the fix is taken back unless that is green. A
new and different failure behind a fix is the next round. Without a verified end the project's files are as they were.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from explainer.catalog.catalog import Catalog
from explainer.errors import UnreadableInput
from explainer.ingest.source import LogReader
from explainer.ingest.text import read_text
from explainer.model.environment import Environment
from explainer.model.finding import Finding, Fix
from explainer.model.incident import Incident, LogLine, MetricRow
from explainer.model.journal import Record, Refused
from explainer.model.repair import (
    FAILED,
    PASSED,
    REFUSED,
    SUSPECT,
    UNFIXED,
    UNPROVED,
    VERIFIED,
    Applied,
    Repair,
    Round,
    Run,
)
from explainer.model.report import Report
from explainer.model.verification import GREEN, INCONCLUSIVE, Failure, ProcessReport, Verification
from explainer.verification.command import OnOutput, run_command
from explainer.verification.judge import silent_faults
from explainer.verification.live_report import live_environment, read_reports, with_live_facts
from explainer.verification.verify import Watch, verify_command
from explainer.workflow import apply, explain_incident, plan_report, undo

MAX_CANDIDATES = 6
MAX_DEPTH = 3
_WORTH_TRYING = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is run and how far a repair may go."""

    command: tuple[str, ...]
    root: str
    catalog: Catalog
    environment_of: Callable[[Incident], Environment | None] = lambda _: None
    watch: Watch = field(default_factory=Watch)
    unsafe: bool = False
    keep_unproved: bool = False


def run_program(job: Job, on_output: OnOutput, *, is_shown: bool = True) -> Run:
    """Run the command once, its output passed to `on_output` as it comes, and explain its failure.

    Raises:
        CannotStart: there is no such program.
    """
    folder = tempfile.mkdtemp(prefix="gradfix-")
    reader = _Reader()
    try:
        environment = live_environment({"folder": folder, "mode": "run"}, dict(os.environ))

        def pass_on(stream: int, data: bytes) -> None:
            on_output(stream, data)
            reader.feed(stream, data)

        ended = run_command(job.command, environment=environment, folder=job.root, on_output=pass_on, is_shown=is_shown)
        processes = read_reports(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    incidents = reader.close()
    silent = silent_faults(processes) if ended.status == 0 else ()
    report = _explain(_told(incidents, silent), processes, job) if ended.status or silent else None
    return Run(status=ended.status, seconds=ended.seconds, report=report, processes=processes, is_asked=ended.is_asked)


def _told(incidents: list[Incident], silent: Sequence[str]) -> list[Incident]:
    """What was printed, with what the processes were seen to do wrong without a word, as lines and metrics of the log."""
    if not silent:
        return incidents
    base = incidents[-1] if incidents else Incident()
    lines = tuple(LogLine(text=f"seen in the live program: {one}") for one in silent)
    rows = tuple(MetricRow(values=(("grad_norm", math.nan),)) for one in silent if "not finite" in one)
    return [replace(base, log=(*base.log, *lines), metrics=(*base.metrics, *rows))]


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


def _explain(incidents: Sequence[Incident], processes: Sequence[ProcessReport], job: Job) -> Report | None:
    """The report of the failure that ended a run: of what was printed, else of what a process noted and did not print."""
    failures = [failure for one in processes for failure in one.failures if failure.text]
    printed = [_with_facts(one, failures) for one in incidents if one.exceptions]
    noted = [with_live_facts(one, failure) for failure in reversed(failures) for one in read_text(failure.text)]
    tries = [*reversed(printed), *noted, *reversed(incidents)]
    reports = [explain_incident(one, job.environment_of(one), job.catalog) for one in tries[:6]]
    best = next((one for one in reports if one.findings), reports[0] if reports else None)
    return plan_report(best, job.catalog, job.root) if best is not None else None


def _with_facts(incident: Incident, failures: Sequence[Failure]) -> Incident:
    """An incident that was printed, with what was seen live at that failure."""
    said = {(record.type.rpartition(".")[2], record.message.strip()[:200]) for record in incident.exceptions}
    for failure in reversed(failures):
        if (failure.type.rpartition(".")[2], failure.message.strip()[:200]) in said:
            return with_live_facts(incident, failure)
    return incident


def repair(job: Job, on_output: OnOutput, tell: Callable[[str], None]) -> Repair:
    """Run the command; where it fails, try the edits of its findings until one is verified.

    `tell` is given one line a step. Whatever interrupts it, KeyboardInterrupt included, leaves the files as they were.

    Raises:
        CannotStart: there is no such program.
    """
    run = run_program(job, on_output)
    if run.status == 0 and run.report is None:
        return Repair(status=PASSED, exit_status=0, report=None)
    if run.report is None or not run.report.findings or run.is_asked:
        return Repair(status=FAILED if run.status else SUSPECT, exit_status=run.status, report=run.report)
    attempt = _Attempt(job, tell, _steps_so_far(run.processes))
    try:
        proof = attempt.search(run.report, depth=0)
    except BaseException:
        attempt.take_all_back()
        raise
    rounds = tuple(attempt.rounds)
    if proof is not None:
        return Repair(
            status=VERIFIED, exit_status=run.status, report=run.report, rounds=rounds, applied=attempt.told, verification=proof
        )  # fmt: skip
    if attempt.unproved is not None and job.keep_unproved and attempt.retake():
        return Repair(
            status=UNPROVED, exit_status=run.status, report=run.report, rounds=rounds, applied=attempt.told,
            verification=attempt.unproved,
        )  # fmt: skip
    status = UNPROVED if attempt.unproved is not None else UNFIXED if run.status else SUSPECT
    return Repair(
        status=status, exit_status=run.status, report=run.report, rounds=rounds, verification=attempt.unproved
    )


def _steps_so_far(processes: Sequence[ProcessReport]) -> tuple[tuple[str, int], ...]:
    """How many steps each optimizer had made at the failure: the most of any process."""
    most: dict[str, int] = {}
    for process in processes:
        for name, count in process.steps:
            most[name] = max(most.get(name, 0), count)
    return tuple(most.items())


class _Attempt:
    """A search through fixes: what is applied now, what was tried."""

    def __init__(self, job: Job, tell: Callable[[str], None], past: tuple[tuple[str, int], ...]) -> None:
        self._job = job
        self._tell = tell
        self._watch = replace(job.watch, past=past)
        self._records: list[Record] = []
        self._tried: set[str] = set()
        self._spent = 0
        self._held: tuple[Finding, Fix] | None = None
        self.rounds: list[Round] = []
        self.applied: list[Applied] = []
        self.unproved: Verification | None = None

    @property
    def told(self) -> tuple[Applied, ...]:
        """What is applied now."""
        return tuple(self.applied)

    def search(self, report: Report, depth: int) -> Verification | None:
        """Try the edits for a failure, best first; the green verification of the first that holds."""
        for finding, fix in _candidates(report, unsafe=self._job.unsafe):
            if self._spent >= MAX_CANDIDATES or (fix.patch or "") in self._tried:
                continue
            self._tried.add(fix.patch or "")
            if not self._apply(finding, fix):
                continue
            self._spent += 1
            proof = self._verify(finding, fix)
            if proof.verdict == GREEN:
                return proof
            if proof.verdict == INCONCLUSIVE and self.unproved is None:
                self.unproved, self._held = proof, (finding, fix)
            further = self._next_failure(proof, report)
            if further is not None and depth + 1 < MAX_DEPTH:
                self._tell(f"behind it: {further.findings[0].cause}")
                deeper = self.search(further, depth + 1)
                if deeper is not None:
                    return deeper
            self._take_back()
        return None

    def _apply(self, finding: Finding, fix: Fix) -> bool:
        record = apply(fix, cause=finding.cause, root=self._job.root, command=" ".join(self._job.command))
        if isinstance(record, Refused):
            self._tell(f"{fix.id}: refused: {record.reason}")
            self.rounds.append(Round(cause=finding.cause, fix=fix.id, verdict=REFUSED, reasons=(record.reason,)))
            return False
        self._records.append(record)
        self.applied.append(
            Applied(cause=finding.cause, fix=fix.id, title=fix.title, patch=fix.patch or "", record=record.id)
        )
        self._tell(f"try {self._spent + 1}: {fix.title} ({finding.cause}, {fix.applicability})")
        return True

    def _verify(self, finding: Finding, fix: Fix) -> Verification:
        proof = verify_command(self._job.command, self._job.root, self._watch)
        self.rounds.append(Round(cause=finding.cause, fix=fix.id, verdict=proof.verdict, reasons=proof.reasons))
        self._tell(f"  {proof.verdict}" + (f": {proof.reasons[0]}" if proof.reasons else ""))
        return proof

    def _next_failure(self, proof: Verification, before: Report) -> Report | None:
        """The report of another failure than the one before, which the fix laid open; None for the same one or none."""
        if proof.verdict == GREEN or not any(one.failures for one in proof.processes):
            return None
        report = _explain(list(read_text(proof.output)), proof.processes, self._job)
        if report is None or not report.findings or _place_of(report) == _place_of(before):
            return None
        return report

    def _take_back(self) -> None:
        """Undo the last patch."""
        undone = undo(self._records.pop())
        self.applied.pop()
        if isinstance(undone, Refused):
            self._tell(f"could not be taken back: {undone.reason}")

    def take_all_back(self) -> None:
        """Undo every patch that is applied."""
        while self._records:
            self._take_back()

    def retake(self) -> bool:
        """Apply the first fix that was inconclusive again, to keep it."""
        return self._held is not None and self._apply(*self._held)


def _candidates(report: Report, *, unsafe: bool) -> Iterator[tuple[Finding, Fix]]:
    """The edits to try: of each believable finding in its order, safe ones before unsafe ones."""
    allowed = ("safe", "unsafe") if unsafe else ("safe",)
    for finding in report.findings:
        if finding.score < _WORTH_TRYING:
            continue
        for fix in finding.fixes:
            if fix.changes and fix.applicability in allowed:
                yield finding, fix


def _place_of(report: Report) -> tuple[str, str, str]:
    """What tells one failure from another; not the line, which an edit above it moves."""
    named = [record for record in report.incident.exceptions if record.type]
    if not named:
        return report.findings[0].cause if report.findings else "", "", ""
    frame = next((one for one in reversed(named[-1].frames) if one.library is None), None)
    said = f"{named[-1].type}: {named[-1].message}"
    return said, frame.file if frame else "", (frame.function or "") if frame else ""
