"""Runs the user's command, explains its failure, and with leave tries fixes until one is verified.

A fix is applied, the command is run again for a few steps under watch, and the fix is taken back unless that is green. A
new and different failure behind a fix is the next round. Without a verified end the project's files are as they were.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace

from explainer.fix.choice import Choice
from explainer.ingest.text import read_text
from explainer.model.finding import Evidence, Finding, Fix
from explainer.model.incident import Incident
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
from explainer.model.verification import GREEN, INCONCLUSIVE, RED, Verification
from explainer.proof import Target, prove, starved_behind, target_of, wants_look, with_look
from explainer.run import (
    Job,
    explain_run,
    run_program,
    seen_without_a_word,
    sharpen,
    warned_of,
    with_left_out,
    with_silent,
)
from explainer.verification.command import OnOutput
from explainer.verification.judge import faults_without_a_word
from explainer.workflow import apply, undo

MAX_CANDIDATES = 6
MAX_DEPTH = 5
_WORTH_TRYING = 0.03


def repair(job: Job, on_output: OnOutput, tell: Callable[[str], None]) -> Repair:
    """Run the command; where it fails, try the edits of its findings until one is verified.

    `tell` is given one line a step. Whatever interrupts it, KeyboardInterrupt included, leaves the files as they were.

    Raises:
        CannotStart: there is no such program.
    """
    run = sharpen(job, run_program(job, on_output), tell)
    if run.status == 0 and run.report is None:
        return Repair(status=PASSED, exit_status=0, report=None)
    if run.report is None or not run.report.findings or run.is_asked:
        return Repair(status=FAILED if run.status else SUSPECT, exit_status=run.status, report=run.report)
    attempt = _Attempt(job, tell, target_of(run, job.root))
    try:
        proof = attempt.search(run.report, depth=0)
    except BaseException:
        attempt.take_all_back()
        raise
    rounds = tuple(attempt.rounds)
    if proof is not None:
        report = led_by_proof(run.report, attempt.told[0].cause, attempt.told[0].fix)
        return Repair(
            status=VERIFIED, exit_status=run.status, report=report, rounds=rounds, applied=attempt.told, verification=proof
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


class _Attempt:
    """A search through fixes: what is applied now, what was tried."""

    def __init__(self, job: Job, tell: Callable[[str], None], target: Target) -> None:
        self._job = job
        self._tell = tell
        self._target = target
        self._records: list[Record] = []
        self._tried: set[tuple[frozenset[str], str]] = set()
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
            if self._spent >= MAX_CANDIDATES or not self._is_new(fix, is_first=finding is report.findings[0]):
                continue
            self._tried.add((self._applied, fix.patch or ""))
            choice = Choice(finding=finding, fix=fix)
            if not self._records and wants_look(self._target, choice):
                self._tell("the program runs once more as it is, for gradients to hold the edit against")
                self._target = with_look(self._job, self._target, choice)
            if not self._apply(finding, fix):
                continue
            self._spent += 1
            proof = self._verify(finding, fix)
            further = self._halfway(choice, proof, report) if proof.verdict == GREEN else None
            if proof.verdict == GREEN and further is None:
                return proof
            if proof.verdict == INCONCLUSIVE and self.unproved is None:
                self.unproved, self._held = proof, (finding, fix)
            further = further or self._further(proof, report)
            if further is not None and depth + 1 < MAX_DEPTH:
                self._tell(f"behind it: {further.findings[0].cause}")
                deeper = self.search(further, depth + 1)
                if deeper is not None:
                    return deeper
            self._take_back()
        return None

    def _further(self, proof: Verification, before: Report) -> Report | None:
        """Another failure that the fix laid open, traced where no edit for it is known: as the first one was."""
        further = next_failure(self._job, proof, before)
        if further is None or any(_candidates(further, unsafe=self._job.unsafe)):
            return further
        run = Run(status=1, seconds=0.0, report=further, processes=proof.processes, is_asked=False)
        return sharpen(self._job, run, self._tell).report

    @property
    def _applied(self) -> frozenset[str]:
        return frozenset(one.patch for one in self.applied)

    def _is_new(self, fix: Fix, *, is_first: bool) -> bool:
        """Whether an edit was not tried: nor beside others, but where it is for what these have just laid open."""
        told = [beside for beside, patch in self._tried if patch == (fix.patch or "")]
        return not told or (bool(self.applied) and is_first and self._applied not in told)

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
        proof = prove(self._job, self._target, Choice(finding=finding, fix=fix), self._tell)
        self.rounds.append(Round(cause=finding.cause, fix=fix.id, verdict=proof.verdict, reasons=proof.reasons))
        self._tell(f"  {proof.verdict}" + (f": {proof.reasons[0]}" if proof.reasons else ""))
        for note in proof.notes:
            if (
                " is kept in " in note
            ):  # a file that was edited meanwhile: its author must hear of it whatever the verdict
                self._tell(f"  {note}")
        return proof

    def _halfway(self, choice: Choice, proof: Verification, before: Report) -> Report | None:
        """What a green fix for the graph left cut off, where an edit for that is known; None where it left nothing."""
        traced = starved_behind(self._job, self._target, choice, proof)
        further = next_failure(self._job, replace(traced, verdict=RED), before) if traced is not None else None
        return further if further is not None and any(_candidates(further, unsafe=self._job.unsafe)) else None

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


def led_by_proof(report: Report, cause: str, fix: str) -> Report:
    """The report with the cause in front whose fix was verified, and of its lines the one that this fix changes.

    What was tried outweighs what was read.
    """
    proven = next((one for one in report.findings if one.cause == cause), None)
    if proven is None:
        return report
    first = report.findings[0]
    told_by_line = _led_by_line(proven, fix)
    if proven is first:
        return replace(report, findings=(told_by_line, *report.findings[1:])) if told_by_line is not proven else report
    told = Evidence(id="verified", reads="verification", says="the program trains with its fix", weight=first.score)
    led = replace(told_by_line, score=first.score, evidence=(told, *proven.evidence))
    rest = [replace(one, score=proven.score) if one is first else one for one in report.findings if one is not proven]
    return replace(report, findings=(led, *sorted(rest, key=lambda one: -one.score)))


def _led_by_line(proven: Finding, fix: str) -> Finding:
    """The finding with that line in front, of those of which the same is said, that the fix changes."""
    changed = next((_changed_lines(one) for one in proven.fixes if one.id == fix), frozenset[tuple[str, int]]())
    told = [(os.path.basename(one.file), one.line) in changed for one in proven.culprits]
    if not any(told) or told[0]:
        return proven
    first, led = proven.culprits[0], proven.culprits[told.index(True)]
    if led.why != first.why:  # what was traced, or where a fault begins, stays in front of the line that cures it
        return proven
    return replace(proven, culprits=(led, *(one for one in proven.culprits if one is not led)))


def _changed_lines(fix: Fix) -> frozenset[tuple[str, int]]:
    """The lines, numbered from 1, that a fix takes away or replaces, each with its file's name."""
    return frozenset(
        (os.path.basename(one.file), line + 1)
        for one in fix.changes
        for kind, start, end, _, _ in difflib.SequenceMatcher(
            None, one.before.splitlines(), one.after.splitlines(), autojunk=False
        ).get_opcodes()
        if kind in ("replace", "delete")
        for line in range(start, end)
    )


def next_failure(job: Job, proof: Verification, before: Report) -> Report | None:
    """The report of another failure than the one before, which a fix laid open; None for the same one or none."""
    if proof.verdict == GREEN:
        return None
    is_failed = any(one.failures for one in proof.processes)
    told = list(read_text(proof.output))
    if not is_failed:
        seen = list(seen_without_a_word(proof.processes, job.root))
        told = seen or with_left_out(_newly_warned(told, proof, before, job), proof.processes, job.root)
        told = told or with_silent([], faults_without_a_word(proof.processes))
    report = explain_run(told, proof.processes, job) if told or is_failed else None
    if report is None or not report.findings or _place_of(report) == _place_of(before):
        return None
    return report


def _newly_warned(told: list[Incident], proof: Verification, before: Report, job: Job) -> list[Incident]:
    """What was printed where it warns of what a program without the fix had not warned of."""
    known = {one.message for one in before.incident.warnings}
    new = [replace(one, warnings=tuple(each for each in one.warnings if each.message not in known)) for one in told]
    return warned_of(new, proof.processes, job.catalog)


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
    """What tells one failure from another: not the line, which an edit above it moves, where there is a message to tell it by."""
    named = [record for record in report.incident.exceptions if record.type]
    if not named:
        first = report.findings[0] if report.findings else None
        culprit = first.culprits[0] if first is not None and first.culprits else None
        return first.cause if first else "", culprit.file if culprit else "", str(culprit.line) if culprit else ""
    frame = next((one for one in reversed(named[-1].frames) if one.library is None), None)
    said = f"{named[-1].type}: {named[-1].message}"
    return said, frame.file if frame else "", (frame.function or "") if frame else ""
