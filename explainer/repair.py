"""Runs the user's command, explains its failure, and with leave tries fixes until one is verified.

A fix is applied, the command is run again for a few steps under watch, and the fix is taken back unless that is green. A
new and different failure behind a fix is the next round. Without a verified end the project's files are as they were.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from explainer.fix.choice import Choice
from explainer.ingest.text import read_text
from explainer.model.finding import Finding, Fix
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
from explainer.model.trace import STARVING_CUT
from explainer.model.verification import CHECKPOINT, GREEN, INCONCLUSIVE, RED, UNKNOWN, ProcessReport, Verification
from explainer.run import Job, explain_run, run_program, sharpen, steps_so_far
from explainer.verification.against import used_by, verify_with_twin
from explainer.verification.command import OnOutput
from explainer.verification.difference import changed_of_trained, compare_runs
from explainer.verification.stream import OnStep
from explainer.verification.traced import SILENT, lines_of
from explainer.verification.unowned import PARTS, unowned_of
from explainer.verification.verify import verify_command
from explainer.workflow import apply, undo

INFERENCE = "inplace/inference-tensor"
# Fixes that take a cut away. What trained beside it, on the same values, has the gradients that it had, or the cut was meant for it.
RECONNECTS = frozenset({"keep-the-tensor", "keep-what-was-traced", "compute-in-torch"})
_HUNK = re.compile(r"@@ -[\d,]+ \+(\d+)")
# `ema = 0.9 * ema + 0.1 * loss.detach()`: a statistic of steps that are over, also where this step's loss is divided by it.
_AVERAGE = re.compile(r"\+\s*([\w.]+)\s*=\s*(?=.*(?<![\w.])\1\b)(?!.*(?<![\w.])\1\.detach)")
_CUT = re.compile(r"\.detach_?\(|\bno_grad\b|\binference_mode\b|requires_grad_\(False\)")
MAX_CANDIDATES = 6
MAX_DEPTH = 3
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
    attempt = _Attempt(job, tell, target_of(run))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a verification of a fix must show, as the failed run says.

    `past` are the steps at the failure that it must go past; of a run that failed silently, all of them but the last.
    `is_unowned` where trainable parameters belonged to no optimizer. `given` parameters had a gradient at the first steps.
    `before` are the processes of the program as it was, with their first gradients, once a fix was tried that may falsify
    those: one that takes a cut away, or one that makes one and lets a program go on that had trained until then.
    """

    past: tuple[tuple[str, int], ...] = ()
    is_silent: bool = False
    is_unowned: bool = False
    given: int = 0
    before: tuple[ProcessReport, ...] | None = None


def wants_past(target: Target, fix: Fix) -> bool:
    """Whether a fix may falsify gradients that the program had before it failed, and those are not known yet."""
    return bool(target.past) and target.before is None and _may_falsify(target, fix)


def with_past(job: Job, target: Target) -> Target:
    """The target with the first gradients of the program as it stands, which runs once more: before anything is written.

    A program that failed had stepped by then, and is to be cut: so far it had the gradients that its author meant.

    Raises:
        CannotStart: there is no such program.
        Stopped: `job.watch.is_stopped` said so.
    """
    first = tuple((name, 0) for name, _ in target.past)
    return replace(
        target, before=verify_command(job.command, job.root, replace(job.watch, steps=1, past=first)).processes
    )


def _may_falsify(target: Target, fix: Fix) -> bool:
    return fix.id in RECONNECTS if target.is_silent else cuts_graph(fix)


def _is_compared(before: Sequence[ProcessReport] | None, proof: Verification) -> bool:
    """Whether the first gradients were held against those of the program as it was: what an edit starves then differs."""
    return bool(before) and compare_runs("", before or (), proof.processes).verdict != UNKNOWN


def written_lines(patch: str) -> frozenset[tuple[str, int]]:
    """The files and lines that a patch adds, as they stand once it is applied."""
    found, file, line = set(), "", 0
    for text in patch.splitlines():
        if text.startswith("+++ "):
            file = text[4:].removeprefix("b/")
        elif head := _HUNK.match(text):
            line = int(head[1])
        elif text.startswith("+"):
            found.add((file, line))
            line += 1
        elif text.startswith(" "):
            line += 1
    return frozenset(found)


def cuts_graph(fix: Fix) -> bool:
    """Whether a patch keeps more from the graph than the lines that it replaces; what a running average takes is not meant."""
    lines = [line for line in (fix.patch or "").splitlines() if not _AVERAGE.match(line)]
    added, removed = (
        sum(len(_CUT.findall(line)) for line in lines if line.startswith(sign) and not line.startswith(sign * 3))
        for sign in "+-"
    )
    return added > removed


def target_of(run: Run) -> Target:
    """What a verification of a fix for this run's failure must show."""
    steps = steps_so_far(run.processes)
    facts = run.report.incident.facts if run.report is not None else ()
    return Target(
        past=steps if run.status else tuple((name, count - 1) for name, count in steps),
        is_silent=not run.status,
        is_unowned=not run.status and any(one.name == PARTS for one in facts),
        given=_given(run.processes),
    )


def prove(
    job: Job,
    target: Target,
    choice: Choice,
    tell: Callable[[str], None],
    *,
    on_output: OnOutput | None = None,
    on_step: OnStep | None = None,
) -> Verification:
    """Verify the command with the chosen fix applied: its health, and what health does not show.

    That is a twin's gradients where checkpointing or compilation may falsify them, parameters without an optimizer, and a
    traced run where the fault may only have fallen silent. `on_output` and `on_step` follow the first run.

    Raises:
        CannotStart: there is no such program.
        Stopped: `job.watch.is_stopped` said so.
    """
    watch = replace(job.watch, past=target.past)
    proof = verify_command(job.command, job.root, watch, on_output, on_step)
    if proof.verdict == GREEN and _wants_twin(choice.fix, proof):
        tell("  green alone; held against its first gradients without checkpointing and compilation")
        proof = verify_with_twin(job.command, job.root, watch, proof)
    if proof.verdict == GREEN and (now := _given(proof.processes)) < target.given:
        # A cut in the wrong place trains on without an error, and without a part of the model.
        why = f"{now} parameters get a gradient where {target.given} did before the edit"
        proof = replace(proof, verdict=RED, reasons=(why,))
    others = changed_of_trained(target.before or (), proof.processes) if _may_falsify(target, choice.fix) else ()
    if proof.verdict == GREEN and others:
        names = ", ".join(one.name for one in others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        why = f"{names} trained before, and now with other gradients: the cut was " + (
            "meant for them" if target.is_silent else "in their way"
        )
        proof = replace(proof, verdict=RED, reasons=(why,))
    if proof.verdict == GREEN and target.is_unowned and (left := unowned_of(proof.processes)):
        why = f"{left[0].count} trainable parameters of {left[0].model} still belong to no optimizer"
        proof = replace(proof, verdict=RED, reasons=(why,))
    is_quiet = target.is_silent or choice.finding.cause.startswith("inplace/")
    if proof.verdict == GREEN and (is_quiet or (cuts_graph(choice.fix) and not _is_compared(target.before, proof))):
        # Elsewhere only what the edit itself cuts off: what starved before it is not its doing.
        own = None if is_quiet else written_lines(choice.fix.patch or "")
        proof = _without_silence(job, target, proof, choice.finding.cause, own)
    return proof


def _without_silence(
    job: Job, target: Target, proof: Verification, cause: str, own: frozenset[tuple[str, int]] | None = None
) -> Verification:
    """The green proof, if a traced run sees nothing that goes wrong without an error: red, with what it sees, if it does.

    `own` are the files and lines that count; None for all. A health of losses and gradients cannot tell a cured program from one whose fault has only fallen silent.
    """
    # As far as a trace goes to see what falls silent: a few steps of each optimizer that has stepped.
    first = tuple((name, min(count, job.watch.steps)) for name, count in target.past)
    traced = verify_command(job.command, job.root, replace(job.watch, past=first, trace=True))
    # What ran in inference mode trained nothing before the edit either: that was the author's to say.
    kinds = SILENT - {STARVING_CUT} if cause == INFERENCE else SILENT
    seen = [
        line
        for one in traced.processes
        for line in lines_of(one.traced)
        if line.kind in kinds and (own is None or (os.path.relpath(line.file, job.root), line.line) in own)
    ]
    if not seen:
        return proof
    reasons = tuple(f"{os.path.relpath(one.file, job.root)}:{one.line}: {one.says}" for one in seen)
    return replace(proof, verdict=RED, reasons=reasons)


def _given(processes: Sequence[ProcessReport]) -> int:
    """How many parameters of its optimizers had a gradient at the first steps of a process: the most of any."""
    found = [0]
    for process in processes:
        most: dict[str, int] = {}
        for row in process.rows:
            most[row.optimizer] = max(most.get(row.optimizer, 0), row.given)
        found.append(sum(most.values()))
    return max(found)


class _Attempt:
    """A search through fixes: what is applied now, what was tried."""

    def __init__(self, job: Job, tell: Callable[[str], None], target: Target) -> None:
        self._job = job
        self._tell = tell
        self._target = target
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
            if not self._records and wants_past(self._target, fix):
                self._tell("the edit keeps something from the graph: the gradients so far are looked at first")
                self._target = with_past(self._job, self._target)
            if not self._apply(finding, fix):
                continue
            self._spent += 1
            proof = self._verify(finding, fix)
            if proof.verdict == GREEN:
                return proof
            if proof.verdict == INCONCLUSIVE and self.unproved is None:
                self.unproved, self._held = proof, (finding, fix)
            further = next_failure(self._job, proof, report)
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
        proof = prove(self._job, self._target, Choice(finding=finding, fix=fix), self._tell)
        self.rounds.append(Round(cause=finding.cause, fix=fix.id, verdict=proof.verdict, reasons=proof.reasons))
        self._tell(f"  {proof.verdict}" + (f": {proof.reasons[0]}" if proof.reasons else ""))
        for note in proof.notes:
            if (
                " is kept in " in note
            ):  # a file that was edited meanwhile: its author must hear of it whatever the verdict
                self._tell(f"  {note}")
        return proof

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


def next_failure(job: Job, proof: Verification, before: Report) -> Report | None:
    """The report of another failure than the one before, which a fix laid open; None for the same one or none."""
    if proof.verdict == GREEN or not any(one.failures for one in proof.processes):
        return None
    report = explain_run(list(read_text(proof.output)), proof.processes, job)
    if report is None or not report.findings or _place_of(report) == _place_of(before):
        return None
    return report


def _wants_twin(fix: Fix, proof: Verification) -> bool:
    """Whether healthy gradients may be wrong ones all the same.

    They went through checkpointing or compiled code, and the fix claims the same mathematics or touches checkpointing.
    """
    patch = (fix.patch or "").lower()
    return bool(used_by(proof.processes)) and (
        fix.applicability == "safe" or CHECKPOINT in patch or "reentrant" in patch
    )


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
