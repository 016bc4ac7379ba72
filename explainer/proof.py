"""What a verification of a fix must show: health, and what health does not show.

A program that trains on after an edit may train on other gradients than its author meant. They are held against those of the
program as it was, where it had any; against a twin's; and a traced run must see nothing that goes wrong in silence.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from explainer.fix.choice import Choice
from explainer.ingest.text import read_text
from explainer.match.silent import silent_warnings
from explainer.model.finding import Fix
from explainer.model.incident import Incident, WarningRecord
from explainer.model.repair import Run
from explainer.model.trace import STARVED_OF_NUMBER, STARVING_CUT, STARVING_OFF
from explainer.model.verification import CHECKPOINT, GRAD_SCALER, GREEN, RED, SAME, UNKNOWN, ProcessReport, Verification
from explainer.run import Job, left_out, steps_so_far
from explainer.source.graph.alias import has_two_meanings, writes_entries
from explainer.verification.against import used_by, verify_meant, verify_with_twin
from explainer.verification.command import OnOutput
from explainer.verification.difference import changed_of_trained, compare_runs
from explainer.verification.given_up import caught_in_steps, left_out_of_loss
from explainer.verification.stream import OnStep
from explainer.verification.traced_line import SILENT, lines_of
from explainer.verification.unowned import PARTS, unowned_of
from explainer.verification.verify import verify_command
from explainer.workflow import program_of

CARRIED = "backward/state-carried-across-steps"
INFERENCE = "inplace/inference-tensor"
# What stepped before such a failure had gradients without it.
_OF_THE_GRAPH = frozenset(("inplace", "backward", "no-graph"))
NO_PARAMETERS = "no-graph/empty-parameter-list"
NO_LONGER_TRAINED = "buffer-of-parameter"  # the fix that makes a buffer of one parameter
UNREDUCED = "distributed/unused-parameters"
# Writes into what autograd has saved: the forward ran as it was meant, only its values were gone by the backward.
ON_SAVED = "inplace/op-on-saved-tensor"
SAVED = frozenset(
    f"inplace/{name}"
    for name in (
        "op-on-saved-tensor", "cache-updated-in-training", "recurrent-state-overwritten", "shared-mask-under-checkpointing",
    )
)  # fmt: skip
# Fixes that take a cut away. What trained beside it, on the same values, has the gradients that it had, or the cut was meant for it.
RECONNECTS = frozenset({"keep-the-tensor", "keep-what-was-traced", "compute-in-torch"})
# What a ratio of new to old probabilities takes as the old ones is a constant, and so is what a network is held against of what it
# said before. With its graph the first step had the derivatives of both: its loss was right, and its gradients were not.
OF_THE_PAST = frozenset({"act-without-grad", "detach-the-old-policy", "detach-own-responses"})
# What rounds to 0 has no gradient behind a floor either.
_UNDERFLOWS = frozenset({"nan/log-of-zero", "nan/exp-overflow"})
_SAME_LOSS = 1e-4
_SAME_FORWARD = (
    1e-6  # of the same operations on the same values: at the start of a training any loss is near the same number
)
_SOME_STEPS = 3  # by then a factor that begins as zero, as an adapter's does, has let gradients through
RUN_ON = 10.0  # seconds: what fails at the end of an epoch, or in an evaluation, is met in a short one
_HUNK = re.compile(r"@@ -[\d,]+ \+(\d+)")
# `ema = 0.9 * ema + 0.1 * loss.detach()`: a statistic of steps that are over, also where this step's loss is divided by it.
# Not `state = tuple(part.detach() for part in state)`, nor `state = {**state, "h": state["h"].detach()}`.
_AVERAGE = re.compile(
    r"\+\s*([\w.]+(?:\[\w+\])?)\s*=\s*(?=.*(?<![\w.])\1(?!\w))(?!.*(?<![\w.])\1(?:\.\w+|\[[^\]]*\])*\.detach)(?!.*\bin \1\b)"
)
_CUT = re.compile(r"\.detach_?\(|\bno_grad\b|\binference_mode\b|requires_grad_\(False\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a verification of a fix must show, as the failed run says.

    `past` are the steps at the failure that it must go past; of a run that failed silently, all of them but the last.
    `is_unowned` where trainable parameters belonged to no optimizer, `is_term` where what starves them cuts off whole terms of the
    loss: a cut that is meant for the part before a head stands before the head. `given` parameters had a gradient at the first steps.
    `is_partial` where the failure was caught, and left a term out of the loss: what trained so far trained on another loss.
    `before` are the processes of the program as it was, with the first gradients of what had stepped by then, once a fix was
    tried that may falsify those; of one that had not stepped, with the gradients of its first backward.
    `meant` are those of its twin on copies of saved tensors, once a fix was tried for a write in place: a twin does not fail
    of that, and its gradients are those of the values that the forward used. `warnings` are what it gave before it failed.
    """

    past: tuple[tuple[str, int], ...] = ()
    is_silent: bool = False
    is_unowned: bool = False
    is_term: bool = False
    is_partial: bool = False
    given: int = 0
    before: tuple[ProcessReport, ...] | None = None
    meant: tuple[ProcessReport, ...] | None = None
    warnings: tuple[WarningRecord, ...] = ()


def wants_look(target: Target, choice: Choice) -> bool:
    """Whether the program has to run once more as it is, before a fix is written, for gradients to hold that fix against."""
    wants_before = target.before is None and _may_falsify(target, choice)
    return wants_before or (target.meant is None and _is_of_saved(target, choice))


def with_look(job: Job, target: Target, choice: Choice) -> Target:
    """The target with the first gradients of the program as it stands, or of its twin.

    A program that failed had stepped by then, and is to be cut: so far it had the gradients that its author meant.

    Raises:
        CannotStart: there is no such program.
        Stopped: `job.watch.is_stopped` said so.
    """
    if _is_of_saved(target, choice) and target.meant is None:
        if has_two_meanings(program_of(job.root, [one.file for one in choice.fix.changes])):
            return replace(target, meant=())
        watch = replace(job.watch, past=target.past, is_twin=True)
        return replace(target, meant=verify_command(job.command, job.root, watch).processes)
    files = [one.file for one in choice.fix.changes]
    if _may_mean_another(target, choice) and not writes_entries(program_of(job.root, files)):
        return replace(target, before=())  # that each name should have its own is as likely what the author thought of
    first = tuple((name, 0) for name, _ in target.past)
    watch = replace(job.watch, steps=1, past=first, first_backward=not target.past)
    return replace(target, before=verify_command(job.command, job.root, watch).processes)


def _is_of_saved(target: Target, choice: Choice) -> bool:
    # An unsafe edit says that it may compute something else: another name may have meant the tensor as it was.
    return not target.is_silent and choice.finding.cause in SAVED and choice.fix.applicability == "safe"


def _may_falsify(target: Target, choice: Choice) -> bool:
    """Whether a fix may change gradients that the program had already: one for the graph or its order, or one that cuts it.

    Not an average of what is over: the first step had that with its graph, and has it without.
    """
    if target.is_silent:
        return bool(target.past) and choice.fix.id in RECONNECTS and not target.is_term
    if choice.finding.cause == UNREDUCED:
        # DDP never reduced them: each rank has its own, where a right program has their mean.
        return False
    if target.is_partial:
        return False
    if _may_mean_another(target, choice):
        return True
    if not target.past:
        # Before the first step: what an earlier backward left behind has no part in the first one, and to cut it changes nothing there.
        return choice.finding.cause == CARRIED and cuts_graph(choice.fix)
    is_of_the_graph = choice.finding.cause.partition("/")[0] in _OF_THE_GRAPH
    return cuts_graph(choice.fix) or (is_of_the_graph and not _cuts_in(choice.fix, "+"))


def _may_mean_another(target: Target, choice: Choice) -> bool:
    """Whether an edit of a write in place, before any step, says that it may compute something else: another name means the tensor."""
    return not target.past and choice.finding.cause == ON_SAVED and choice.fix.applicability != "safe"


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
    return len(_cuts_in(fix, "+", spared=_AVERAGE)) > len(_cuts_in(fix, "-", spared=_AVERAGE))


def _chooses_form(fix: Fix) -> bool:
    """Whether a patch writes the form of checkpointing."""
    lines = (fix.patch or "").splitlines()
    return any(one.startswith("+") and "use_reentrant" in one for one in lines)


def _cuts_in(fix: Fix, sign: str, spared: re.Pattern[str] | None = None) -> list[str]:
    """What cuts the graph in the lines that a patch adds ("+") or takes out ("-"), but for those that are spared."""
    lines = (one for one in (fix.patch or "").splitlines() if one.startswith(sign) and not one.startswith(sign * 3))
    return [cut for line in lines if not (spared and spared.match(line)) for cut in _CUT.findall(line)]


def target_of(run: Run, root: str) -> Target:
    """What a verification of a fix for this run's failure must show."""
    steps = steps_so_far(run.processes)
    facts = run.report.incident.facts if run.report is not None else ()
    told = {one.message for one in (run.report.incident.exceptions if run.report is not None else ())}
    left = (one.message for process in run.processes for one in left_out_of_loss(process, root))
    return Target(
        past=steps if run.status else tuple((name, int((count - 1) // _batches(run))) for name, count in steps),
        is_silent=not run.status,
        is_unowned=not run.status and any(one.name == PARTS for one in facts),
        is_term=not run.status and any(one.name == STARVED_OF_NUMBER for one in facts),
        is_partial=bool(run.status) and not told.isdisjoint(left),
        given=_given(run.processes),
        warnings=run.report.incident.warnings if run.report is not None else (),
    )


def _batches(run: Run) -> float:
    """How many steps a right program makes one of: what was stepped past Accelerate is left out between two updates."""
    return max(
        (one.factor for process in run.processes for one in process.misscaled if one.kind == "stepped"), default=1.0
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

    That is its gradients, held against those of the program before the edit, of that program's twin for a write in place, or
    of its own twin where checkpointing or compilation may falsify them; parameters without an optimizer; and a traced run
    where the fault may only have fallen silent. `on_output` and `on_step` follow the first run.

    Raises:
        CannotStart: there is no such program.
        Stopped: `job.watch.is_stopped` said so.
    """
    is_first = bool(target.before) and not target.past
    watch = replace(job.watch, past=target.past, is_silent=target.is_silent, first_backward=is_first)
    proof = verify_command(job.command, job.root, replace(watch, run_on=RUN_ON), on_output, on_step)
    if proof.verdict == GREEN and target.meant and _is_of_saved(target, choice):
        proof = verify_meant(job.command, job.root, watch, target.meant, proof)
        if proof.comparison is not None and proof.comparison.verdict == SAME:
            return proof
    if proof.verdict == GREEN and _wants_twin(choice.fix, proof):
        tell("  green alone; held against its first gradients without checkpointing and compilation")
        proof = verify_with_twin(job.command, job.root, watch, proof)
    if proof.verdict == GREEN and (why := _worse_than_before(target, choice, job.root, proof)):
        proof = replace(proof, verdict=RED, reasons=(why,))
    if proof.verdict == GREEN and (why := _warned_of(target, choice.finding.cause, job, proof)):
        proof = replace(proof, verdict=RED, reasons=(why,))
    # The non-reentrant form lets a segment without a graph pass: what starves behind it fell silent by that.
    is_quiet = target.is_silent or choice.finding.cause.startswith("inplace/") or _chooses_form(choice.fix)
    is_compared = _is_compared(target.before, proof) and not _is_of_the_past(choice.fix)
    # At the first step, which is compared, what is carried had no gradient yet.
    is_compared = is_compared and not (choice.finding.cause == CARRIED and any(_never_given(proof)))
    if proof.verdict == GREEN and (is_quiet or (cuts_graph(choice.fix) and not is_compared)):
        # Elsewhere only what the edit itself cuts off: what starved before it is not its doing.
        own = None if is_quiet else written_lines(choice.fix.patch or "")
        proof = _without_silence(job, target, proof, choice.finding.cause, own)
    return proof


def starved_behind(job: Job, target: Target, choice: Choice, proof: Verification) -> Verification | None:
    """A traced run of the program with the fix, where a cut keeps parameters of an optimizer from ever getting a gradient.

    None where none does. A graph that is mended halfway trains: the layers that were left out of it are told by their gradients,
    which never come. Layers that the program does not use have none either; a trace tells these apart.
    """
    if not any(_never_given(proof)) or not choice.finding.cause.startswith("no-graph/"):
        return None
    first = tuple((name, min(count, job.watch.steps)) for name, count in target.past)
    traced = verify_command(job.command, job.root, replace(job.watch, past=first, trace=True))
    kinds = {line.kind for one in traced.processes for line in lines_of(one.traced)}
    return traced if kinds & {STARVING_CUT, STARVING_OFF} else None


def _never_given(proof: Verification) -> Iterator[bool]:
    """Of each parameter that an optimizer trains whether it never got a gradient."""
    return (not one.given for each in proof.processes for one in each.parameters if one.trains)


def _is_of_the_past(fix: Fix) -> bool:
    return fix.id.partition("~")[0] in OF_THE_PAST


def _warned_of(target: Target, cause: str, job: Job, proof: Verification) -> str | None:
    """What is wrong by a warning that tells by itself of a training that goes wrong: the one before the edit, or one behind it."""
    uses = used_by(proof.processes)
    own = {cause, *job.catalog.cause(cause).signatures} if target.is_silent else frozenset[str]()
    before = silent_warnings(Incident(warnings=target.warnings), job.catalog, uses)
    for one in read_text(proof.output):
        told = silent_warnings(one, job.catalog, uses)
        if told & own:
            return "the program still gives the warning"
        if told - before:
            first = next(
                each for each in one.warnings if silent_warnings(replace(one, warnings=(each,)), job.catalog, uses)
            )
            return f"behind it the program warns: {first.message.strip().splitlines()[0][:200]}"
    return None


def _worse_than_before(target: Target, choice: Choice, root: str, proof: Verification) -> str | None:
    """What trained before the edit and trains no more, or otherwise; what belongs to no optimizer still."""
    if (now := _given(proof.processes)) < target.given - (choice.fix.id == NO_LONGER_TRAINED):
        # A cut in the wrong place trains on without an error, and without a part of the model.
        return f"{now} parameters get a gradient where {target.given} did before the edit"
    owned = [one for process in proof.processes for one in process.parameters if one.trains and one.given]
    # Of a single step too; but the root of an error that is exactly 0 has none to give.
    if choice.finding.cause in _UNDERFLOWS and owned and not any(one.moved for one in owned):
        return "all gradients are zero with the edit: it takes away what was to train"
    if choice.finding.cause == CARRIED and cuts_graph(choice.fix):
        still = [one.name for one in owned if one.given >= _SOME_STEPS and not one.moved]
        if still:
            return f"{still[0]} gets no gradient but zero: what it makes is used behind the cut alone"
    pair = _first_losses(target.before or (), proof.processes) if _may_mean_another(target, choice) else None
    if pair is not None and not math.isclose(*pair, rel_tol=_SAME_FORWARD, abs_tol=_SAME_FORWARD):
        return f"the first loss is {pair[1]:.6g}, and was {pair[0]:.6g}: another name meant what was written"
    if _is_of_the_past(choice.fix):
        meant, loss = compare_runs("", target.before or (), proof.processes).loss
        if meant is not None and loss is not None and not math.isclose(meant, loss, rel_tol=_SAME_LOSS):
            return f"the loss of the first step is {loss:.6g}, and was {meant:.6g}: the edit changes more than what is derived"
    elif others := changed_of_trained(target.before or (), proof.processes) if _may_falsify(target, choice) else ():
        names = ", ".join(one.name for one in others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        whose = "the cut was meant for them" if target.is_silent else "the edit changes what was right"
        return f"{names} trained before, and now with other gradients: {whose}"
    left = unowned_of(proof.processes) if target.is_unowned else ()
    if choice.finding.cause == NO_PARAMETERS:
        left = left_out(proof.processes, root)
    if left:
        return f"{left[0].count} trainable parameters of {left[0].model} still belong to no optimizer"
    return None


def _first_losses(before: Sequence[ProcessReport], now: Sequence[ProcessReport]) -> tuple[float, float] | None:
    """The loss of the first backward of a program with one process that trains, before an edit and with it."""
    pairs = [[one.losses[0] for one in run if one.losses] for run in (before, now)]
    if any(len(one) != 1 for one in pairs):
        return None
    (meant,), (loss,) = pairs
    return (meant, loss) if math.isfinite(meant) and math.isfinite(loss) else None


def _is_compared(before: Sequence[ProcessReport] | None, proof: Verification) -> bool:
    """Whether the first gradients were held against those of the program as it was: what an edit starves then differs."""
    return bool(before) and compare_runs("", before or (), proof.processes).verdict != UNKNOWN


def _without_silence(
    job: Job, target: Target, proof: Verification, cause: str, own: frozenset[tuple[str, int]] | None = None
) -> Verification:
    """The green proof, if a traced run sees nothing that goes wrong without an error: red, with what it sees, if it does.

    `own` are the files and lines that count; None for all. Healthy losses and gradients cannot tell a cured program from one
    whose fault has only fallen silent.
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
    caught = caught_in_steps(traced.processes, job.root)
    left_out = tuple(one.says for one in caught) if target.is_silent else ()
    if not seen and not left_out:
        return proof
    reasons = (*left_out, *(f"{os.path.relpath(one.file, job.root)}:{one.line}: {one.says}" for one in seen))
    # With what the traced run saw: a second place of the same fault is mended from that.
    return replace(proof, verdict=RED, reasons=reasons, processes=traced.processes)


def _given(processes: Sequence[ProcessReport]) -> int:
    """How many parameters of its optimizers had a gradient at the first steps of a process: the most of any."""
    found = [0]
    for process in processes:
        most: dict[str, int] = {}
        for row in process.rows:
            most[row.optimizer] = max(most.get(row.optimizer, 0), row.given)
        found.append(sum(most.values()))
    return max(found)


def _wants_twin(fix: Fix, proof: Verification) -> bool:
    """Whether healthy gradients may be wrong ones all the same.

    They went through checkpointing or compiled code, and the fix claims the same mathematics or touches checkpointing.
    """
    patch = (fix.patch or "").lower()
    return bool(used_by(proof.processes) - {GRAD_SCALER}) and (
        fix.applicability == "safe" or CHECKPOINT in patch or "reentrant" in patch
    )
