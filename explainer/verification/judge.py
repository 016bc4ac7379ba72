"""The verdict on a watched run, from what its processes reported. Green needs proof; what was not reached is inconclusive."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence

from explainer.model.incident import NAN_STEPS
from explainer.model.verification import (
    ADDS_UP,
    BYPASSED,
    CHANGES_NOTHING,
    CLIPS_EARLY,
    CLIPS_SCALED,
    COMES_LATE,
    DROPPED,
    FROZEN,
    GOES_WITHOUT,
    GREEN,
    HANDLED,
    IDLE,
    INCONCLUSIVE,
    LACKS_FACTOR,
    MADE_ANEW,
    PASSES_OVER,
    RED,
    REDUCES,
    SCHEDULES_IDLE,
    STEPS_PAST,
    SWITCHED,
    THAWED,
    WRITES_GIVEN,
    Dropped,
    EarlyClip,
    Failure,
    Hooked,
    IdleAdapter,
    IdleSchedule,
    Misscaled,
    NarrowReduction,
    ParameterHealth,
    ProcessReport,
    Refused,
    Renewed,
    Unloaded,
    Unsynced,
)
from explainer.verification.command import Ended
from explainer.verification.refused import why_refused

MAX_NAMES = 3
_DRIFT = 1e-6  # of a sum in float64, of values that are the same bits where they are averaged
LEAST_SHARE = 0.25  # of the steps of a whole run: a policy that learns to end its episodes makes fewer
_MISSCALED = {  # by the kinds of `live.misscaled`
    "clipped": f"{CLIPS_SCALED} of {{factor}}",
    "unscaled": f"{LACKS_FACTOR} of {{factor}}, by which the step divides its gradients beside the scaled ones",
    "accumulated": "goes backward past Accelerate, which would divide the loss by the {factor} batches of an update",
    "summed": f"{ADDS_UP} the {{factor}} batches of an update: its `compute_loss` leaves `num_items_in_batch` out",
    "stepped": f"{STEPS_PAST}: it steps after each of the {{factor}} batches of an update",
}
_UNSYNCED = {"thawed": THAWED, "bypassed": BYPASSED}  # by the kinds of `live.unsynced`
_WHERE_IT_ENDED = {  # by `Failure.where`
    "thread": "a thread of it was ended by",
    "uncaught": "a process of it was ended by",
    "printed": "it caught, and made no step after it,",
    HANDLED: "it caught, and made no step after it,",
}
SEGMENT_WITHOUT_INPUTS = "checkpoint without inputs"


def judge(
    ended: Ended, processes: Sequence[ProcessReport], past: Sequence[tuple[str, int]] = (), *, is_silent: bool = False
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The verdict, its reasons, and notes that change nothing about it.

    Red: an exception, a loss or gradient that is not finite and that a step was made with, an optimizer none of whose
    parameters has a gradient, or all of whose gradients are zero over two steps and more. Inconclusive: out of time, not
    past the steps that the optimizers had made when it failed (`past`; of a program that did not, `is_silent`, a whole run with
    a share of them is enough), or zero gradients where another optimizer trains.
    """
    reasons = [*(reason for one in processes for reason in _faults(one)), *_apart(processes)]
    if not ended.status:
        reasons.extend(_ends(processes))
    # A watched process leaves with 0 once it has made its steps; a launcher may still report the others' end.
    if ended.status and not ended.is_late and not is_done(processes):
        reasons.insert(0, _failure(ended, processes))
    if reasons:
        return RED, tuple(dict.fromkeys(reasons)), _notes(processes)
    doubts = list(_doubts(ended, processes, past, is_silent=is_silent))
    return (INCONCLUSIVE if doubts else GREEN), tuple(doubts), _notes(processes)


def is_done(processes: Sequence[ProcessReport]) -> bool:
    """Whether every process that trains made its steps."""
    training = [one for one in processes if one.steps]
    return bool(training) and all(one.is_stopped for one in training)


def _failure(ended: Ended, processes: Sequence[ProcessReport]) -> str:
    last = next((one.failures[-1] for one in reversed(processes) if one.failures), None)
    if last is not None:
        message = _first_line(last)
        return f"it failed: {last.type}: {message}" if message else f"it failed: {last.type}"
    if ended.signal_name:
        return f"it was ended by {ended.signal_name}"
    return f"it ended with exit status {ended.status}"


def _first_line(failure: Failure) -> str:
    return failure.message.strip().split("\n")[0][:200]


def silent_faults(processes: Sequence[ProcessReport]) -> tuple[str, ...]:
    """What is wrong with a run that ended well: nothing trains, or what was trained is not finite."""
    faults = [reason for one in processes for reason in _faults(one)]
    return tuple(dict.fromkeys([*faults, *_apart(processes), *_ends(processes)]))


def faults_without_a_word(processes: Sequence[ProcessReport]) -> tuple[str, ...]:
    """What the libraries let through in a run: gradients scaled wrongly, weights that were not loaded, steps left out."""
    faults = [reason for one in processes for reason in _silent_faults(one)]
    return tuple(dict.fromkeys([*faults, *_apart(processes)]))


def _ends(processes: Sequence[ProcessReport]) -> Iterator[str]:
    return (f"{_WHERE_IT_ENDED[one.where]} {one.type}: {_first_line(one)}" for one in ends_unseen(processes))


def ends_unseen(processes: Sequence[ProcessReport]) -> tuple[Failure, ...]:
    """The exceptions that ended a training while the command ended well: of a thread, of a process that it started, or caught.

    Not one after which there were steps: in the same process, or, since what failed may have been begun anew, in another one.
    """
    is_begun_anew = any(one.steps and not _last_words(one) for one in processes)
    found = []
    for process in () if any(one.is_stopped for one in processes) else processes:
        last = _last_words(process)
        if last is not None and (last.where == "thread" or not is_begun_anew):
            found.append(last)
    return tuple(found)


def _last_words(process: ProcessReport) -> Failure | None:
    """The last exception that a process was ended by, or that it caught and told, if no step came after it."""
    told = [one for one in process.failures if one.where in _WHERE_IT_ENDED and one.text]
    last = told[-1] if told else None
    if last is None:
        return None
    is_uncaught = last.where in ("thread", "uncaught") and (process.losses or process.steps)
    is_first = last.type == "RuntimeError" and not process.steps  # an operation of the program's own, without a module
    if not (last.is_of_training or is_uncaught or is_first):
        return None
    return last if dict(last.steps) == dict(process.steps) else None


def _faults(process: ProcessReport) -> Iterator[str]:
    """What makes a run red, of one process."""
    for optimizer in process.not_finite:
        yield f"parameters of {plain_name(optimizer)} are not finite at the end"
    yield from _silent_faults(process)
    left_out = frozenset(process.left_out)
    losses = enumerate(process.losses)
    bad = next((index for index, loss in losses if not math.isfinite(loss) and index not in left_out), None)
    if bad is not None:
        yield f"the loss of backward {bad + 1} is {process.losses[bad]}"
    elif process.last_loss:
        yield f"the loss is {process.last_loss} at the end"
    elif process.nan_losses and not process.not_finite:
        yield NAN_STEPS.format(process.nan_losses, sum(made for _, made in process.steps))
    row = next((one for one in process.rows if one.norm is None), None)
    if row is not None:
        names = [one.name for one in process.parameters if one.bad]
        yield f"step {row.step + 1} of {plain_name(row.optimizer)} has gradients that are not finite: {_some(names)}"
    for optimizer, owned in _owned(process).items():
        if not any(one.given for one in owned):
            yield f"no parameter of {plain_name(optimizer)} got a gradient"
        elif SEGMENT_WITHOUT_INPUTS in process.uses and (without := [one.name for one in owned if not one.given]):
            count = "a parameter" if len(without) == 1 else f"{len(without)} parameters"
            yield f"{count} of {plain_name(optimizer)} got no gradient: a checkpointed segment ran without a graph, since none of its inputs requires grad"
    if not _may_come(process):
        yield from _standing(process)


def _silent_faults(process: ProcessReport) -> Iterator[str]:
    """What went wrong without a word of the libraries."""
    for one in process.skipped:
        which = "all" if one.count == one.asked else "the last"
        yield f"{which} {one.count} steps of {plain_name(one.optimizer)} were left out by GradScaler: its gradients are not finite"
    for wrong in process.misscaled:
        yield f"{place_of(wrong)} {_MISSCALED[wrong.kind].format(factor=f'{wrong.factor:g}')}"
    for early in process.early_clips:
        yield f"{place_of(early)} {CLIPS_EARLY}"
    for made in process.renewed:
        yield f"{place_of(made)} makes a {made.kind} {MADE_ANEW}"
    for hook in process.hooked:
        yield f"{place_of(hook)} {WRITES_GIVEN}"
    for load in process.unloaded:
        yield f"{place_of(load)} {PASSES_OVER}: {_fitting(load)}"
    for refused in process.refused:
        yield f"{place_of(refused)} {GOES_WITHOUT}: {why_refused(refused)}"
    for column in process.dropped:
        yield f"{place_of(column)} {DROPPED}: `{column.column}`, which {column.model}.forward does not take"
    for idle in process.idle_schedules:
        yield f"{place_of(idle)} {SCHEDULES_IDLE}: the {idle.stepping} that trains its parameters keeps its learning rate"
    yield from _gradient_faults(process)
    yield from _adapter_faults(process)


def _gradient_faults(process: ProcessReport) -> Iterator[str]:
    """Steps that move nothing, gradients that are lost on their way, and those that never come."""
    for still in process.stuck:
        yield f"{still.steps} steps of {plain_name(still.optimizer)} {CHANGES_NOTHING}: its weights are {still.dtype}, in which they round away"
    for reduced in process.narrow_reductions:
        yield f"{place_of(reduced)} {REDUCES}: the largest that comes back is {reduced.largest:.1g}"
    for late in process.unfrozen:
        what = "a parameter" if late.parameters == 1 else f"{late.parameters} parameters"
        yield f"{what} {COMES_LATE} {plain_name(late.optimizer)} after step {late.at} got no gradient in the {late.steps} steps since"


def _apart(processes: Sequence[ProcessReport]) -> Iterator[str]:
    """What DDP does not average, where the ranks hold other values of it by now: a program may average it by itself."""
    told: dict[tuple[str, str | None, int | None, tuple[str, ...]], Unsynced] = {}
    for one in (each for process in processes for each in process.unsynced):
        first = told.setdefault((one.kind, one.file, one.line, one.names), one)
        if any(
            not math.isclose(*pair, rel_tol=_DRIFT, abs_tol=_DRIFT) for pair in zip(first.sums, one.sums, strict=False)
        ):
            yield f"{place_of(one)} {_UNSYNCED[one.kind]}: {_some(one.names)} of {one.module} differ between the ranks"


def _adapter_faults(process: ProcessReport) -> Iterator[str]:
    """Adapters of PEFT that no step trains."""
    for added in () if process.is_stopped else process.idle_adapters:
        also = ", which is frozen" if added.is_frozen else ""
        yield f"{place_of(added)} {IDLE}: `{added.adapter}`, since `{added.instead}` is active{also}"
    for frozen in process.frozen_adapters:
        yield f"{place_of(frozen)} {FROZEN}: `{frozen.adapter}`"
    for switched in process.switched_adapters:
        yield f"{place_of(switched)} {SWITCHED}: `{switched.adapter}`, since `{switched.instead}` is active"


def place_of(
    one: Misscaled
    | NarrowReduction
    | EarlyClip
    | Hooked
    | Renewed
    | Unloaded
    | Refused
    | Dropped
    | IdleAdapter
    | IdleSchedule
    | Unsynced,
) -> str:
    """The file, by its own name, and the line at which something went wrong without a word."""
    return f"{os.path.basename(one.file or '?')}:{one.line}"


def _fitting(one: Unloaded) -> str:
    """How the keys that a load has passed over would fit."""
    others = "".join(f", about as many by `{prefix}`" for prefix in one.others)
    clashes = f", {one.clashes} would clash" if one.clashes else ""
    if one.separator is None:
        how = f"{'with' if one.is_added else 'without'} the prefix `{one.prefix}`"
    else:
        how = f"with `{one.separator}` for" if one.separator else "without"
        how = f"{how} the dots of {'the keys' if one.is_added else 'its names'}"
    return f"{one.fit} of {one.keys} fit {one.module} {how}{others}{clashes}"


def _owned(process: ProcessReport) -> dict[str, list[ParameterHealth]]:
    """The trainable parameters of each optimizer."""
    by_optimizer: dict[str, list[ParameterHealth]] = defaultdict(list)
    for one in process.parameters:
        if one.trains:
            by_optimizer[one.optimizer].append(one)
    return by_optimizer


def _standing(process: ProcessReport) -> Iterator[str]:
    """Optimizers all of whose gradients are zero."""
    for optimizer, owned in _owned(process).items():
        steps = [one.step for one in process.rows if one.optimizer == optimizer]
        if len(steps) > 1 and any(one.given for one in owned) and not any(one.moved for one in owned):
            looked = "" if steps[-1] + 1 == len(steps) else " that were looked at"
            yield f"all gradients of {plain_name(optimizer)} are zero over {len(steps)} steps{looked}"


def _may_come(process: ProcessReport) -> bool:
    """Whether a zero gradient may be meant to come later: the process was stopped, and another optimizer trains."""
    return process.is_stopped and any(one.moved for one in process.parameters)


def _doubts(
    ended: Ended, processes: Sequence[ProcessReport], past: Sequence[tuple[str, int]], *, is_silent: bool
) -> Iterator[str]:
    """What keeps a run without fault from being green."""
    if ended.is_late:
        yield f"it ran out of time after {ended.seconds:.0f} s"
        return
    if not processes:
        yield "no process that imports torch was seen"
    for process in processes:
        if _may_come(process):
            for one in _standing(process):
                yield f"{one}, while another trains: --steps goes on to where it should"
    made: dict[str, int] = {}
    for process in processes:
        for name, count in process.steps:
            made[name] = max(made.get(name, 0), count)
    is_whole = ended.status == 0 and not any(one.is_stopped for one in processes)
    # A program that ran to its own end went past the failure, also where it makes no further step.
    is_past = is_whole or not past or sum(made.values()) > sum(before for _, before in past)
    # Which of several workers trains what is not the same in two runs, and the optimizers of each are counted by themselves.
    most = max(made.values(), default=0)
    is_shared_out = is_whole and sum(1 for one in processes if one.steps and not one.rank) > 1
    for name, before in past:
        if is_shared_out and most >= max(count for _, count in past):
            return
        enough = before * LEAST_SHARE if is_silent and is_whole else before
        if made.get(name, 0) < enough or not is_past:
            yield f"{plain_name(name)} had made {before} steps when it failed, and made {made.get(name, 0)} now"


def _notes(processes: Sequence[ProcessReport]) -> tuple[str, ...]:
    """Parameters that an optimizer owns and that never had a gradient, though others of it have."""
    notes = []
    if processes and not any(one.steps or one.losses for one in processes):
        notes.append("it ran to its end; no optimizer step and no backward was seen")
    for process in processes:
        if process.left_out:
            told = "loss was" if len(process.left_out) == 1 else "losses were"
            notes.append(f"{len(process.left_out)} {told} not finite, and the program made no step with that")
        never = [one.name for one in process.parameters if one.trains and not one.given]
        if never and len(never) < len(process.parameters):
            notes.append(f"{len(never)} of {len(process.parameters)} parameters never got a gradient: {_some(never)}")
    return tuple(dict.fromkeys(notes))


def plain_name(optimizer: str) -> str:
    """`0 Adam` is "the 1st optimizer (Adam)"."""
    number, _, name = optimizer.partition(" ")
    ordinal = {"0": "1st", "1": "2nd", "2": "3rd"}.get(number, f"{int(number) + 1}th" if number.isdigit() else number)
    return f"the {ordinal} optimizer ({name})"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more
