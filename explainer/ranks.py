"""Which rank of a job failed first, from what every rank reported: what was raised, when, and how far its collectives were.

An exception that only says that another process was lost, or that a collective timed out, is an echo: its rank is a victim.
Times decide among the others, where the clocks can be compared; among echoes alone the collectives decide, then what is
missing: a rank that left, or that was killed and left nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from explainer.catalog.catalog import Catalog
from explainer.ingest.text import read_text
from explainer.match.echo import is_echo_chain
from explainer.model.finding import Culprit
from explainer.model.incident import SEEN, Frame, Incident
from explainer.model.rank import (
    DONE,
    ELSEWHERE,
    ENDED,
    FIRST,
    VICTIM,
    WAITING,
    Collective,
    RankRow,
    RankStory,
    name_ranks,
)
from explainer.verification.rank_file import RankFailure, RankProcess

_DISTRIBUTED = ("torch/distributed/", "torch/nn/parallel/distributed.py")
_TIMED_OUT = re.compile(r"\btime(?:d[ -]|[ -])?out", re.IGNORECASE)
_WATCHDOG = re.compile(r"\bwatchdog\b.*\btime(?:d[ -]|[ -])?out|milliseconds before timing out", re.IGNORECASE)
_ABORTED = "Aborted"
_RENDEZVOUS = ("rendezvous.py", "init_process_group", "_new_process_group_helper")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The story of a job, the failure to explain, and the line of the log that says what nobody printed."""

    story: RankStory
    failure: RankFailure | None = None
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rank:
    """A rank with the failure that ended it, and whether that is an echo."""

    process: RankProcess
    failure: RankFailure | None = None
    is_echo: bool = False

    @property
    def number(self) -> int:
        return self.process.rank


def tell_ranks(
    processes: Sequence[RankProcess],
    catalog: Catalog,
    *,
    late_at: float | None = None,
    printed: Sequence[Incident] = (),
) -> Told | None:
    """What became of a job's ranks; None for fewer than two of them, or where nothing failed.

    `late_at` is the wall clock at which a run was ended for lateness: then stacks tell, and what failed later is of the ending.
    `printed` is what the job printed: a watchdog that aborts its process tells nobody else why.
    """
    if max([len(processes), *(one.world or 0 for one in processes)]) < 2 or not processes:
        return None
    ranks = [_rank(one, catalog) for one in processes]
    differing = _tell_differing(ranks)
    failed = [one for one in ranks if one.failure is not None and not one.is_echo]
    if late_at is not None:
        failed = [one for one in failed if one.failure is not None and one.failure.raw["wall"] < late_at]
        if not failed:
            return differing or _tell_hang(ranks)
    if failed:
        told = _tell_first(ranks, failed)
        also = differing.story.says if differing is not None else ()
        return replace(told, story=replace(told.story, odd=(*also, *told.story.odd)))
    return _tell_unsaid(ranks, differing, printed)


def _tell_unsaid(ranks: Sequence[_Rank], differing: Told | None, printed: Sequence[Incident]) -> Told | None:
    """Where no rank raised an exception of its own: one crashed in C, differs, was killed, left, or never came."""
    says_timed_out = any(_WATCHDOG.search(line.text) for one in printed for line in one.log)
    # What the watchdog of a process group aborts raises nothing: it is a victim as well, where the output tells of a timeout.
    aborted = [one for one in ranks if one.process.is_foreign and one.process.fault == _ABORTED and one.failure is None]
    victims = [one for one in ranks if one.failure is not None or (says_timed_out and one in aborted)]
    crashed = [one for one in ranks if one.process.fault and one.failure is None and one not in victims]
    vanished = [one for one in ranks if not one.process.has_report and not one.process.stack]
    left = [one for one in ranks if one.process.is_ended and one.failure is None]
    if crashed:
        return _tell_gone(ranks, crashed[:1], f"crashed ({crashed[0].process.fault})")
    if differing is not None and victims:
        return differing
    if victims and vanished:
        return _tell_gone(
            ranks, vanished, "left no report: killed from outside (SIGKILL), as where host memory ran out"
        )
    if victims and left:
        gone = _tell_gone(ranks, left, "had ended without an error")
        return replace(gone, line=f"{SEEN}the ranks took different paths: {gone.story.says[0]}")
    raised = [one for one in victims if one.failure is not None]
    told = _tell_awaited(ranks, victims)
    if told is not None or not victims:
        return told
    return _tell_first(ranks, raised) if raised else _tell_gone(ranks, victims[:1], f"crashed ({_ABORTED})")


def _rank(process: RankProcess, catalog: Catalog) -> _Rank:
    """The failure that ended a rank: its last one, unless it went on training after that."""
    last = next((one for one in reversed(process.failures) if one.where == "uncaught"), None)
    last = last or (process.failures[-1] if process.failures else None)
    if last is None or (last.where != "uncaught" and (process.steps or 0) > last.steps):
        return _Rank(process=process)
    records = [record for one in read_text(last.text) for record in one.exceptions]
    return _Rank(process=process, failure=last, is_echo=is_echo_chain(records, catalog))


def _tell_first(ranks: Sequence[_Rank], failed: Sequence[_Rank]) -> Told:
    """The first of some ranks that failed, by their clocks, and all others after it."""
    order = sorted(failed, key=lambda one: (one.failure.time if one.failure else 0.0, one.number))
    first, failure = order[0], order[0].failure
    assert failure is not None
    alike = [one for one in order if one.failure is not None and _words(one.failure) == _words(failure)]
    second = next((one for one in order[1:]), None)
    is_sure = not first.is_echo and (second is None or _margin(first, second) > 0)
    says = []
    if len(alike) == len(ranks) and not first.is_echo:
        says.append(
            f"all {len(ranks)} ranks failed alike: each has the cause; {name_ranks([first.number])} was the first"
        )
    elif first.is_echo:
        says.append(
            f"every rank that failed lost another one or waited for it; {name_ranks([first.number])} was the first"
        )
    else:
        says.append(f"rank {first.number} failed first{_at(first)}{_after_words(ranks, first)}")
    near = [one for one in order[1:] if _margin(first, one) <= 0]
    if near and not first.is_echo and len(alike) < len(order):
        numbers = name_ranks([first.number, *(one.number for one in near)])
        says.append(
            f"{numbers} failed by themselves within {_lag(first, near[-1]):.3g} s: their clocks cannot tell which was first"
        )
    story = _story(ranks, first, says, is_sure=is_sure)
    return Told(story=story, failure=failure)


def _words(failure: RankFailure) -> tuple[str, str]:
    """Type and message without numbers, which are the same on ranks that failed alike."""
    return failure.type, re.sub(r"\d+", "#", failure.message[:400])


def _margin(first: _Rank, second: _Rank) -> float:
    """By how many seconds the first failed earlier, less what the clocks may be off; not positive where nobody can tell."""
    return _lag(first, second) - first.process.is_comparable(second.process)


def _lag(first: _Rank, second: _Rank) -> float:
    assert first.failure is not None
    return (second.failure.time if second.failure else first.failure.time) - first.failure.time


def _at(rank: _Rank) -> str:
    """Where in training a rank failed."""
    failure = rank.failure
    steps = failure.steps if failure is not None else rank.process.steps
    return f", after {steps} optimizer step{'s' if steps != 1 else ''}" if steps is not None else ""


def _after_words(ranks: Sequence[_Rank], first: _Rank) -> str:
    """Which ranks failed after the first, in which collective; which were ended."""
    parts = []
    others = [one for one in ranks if one is not first]
    for what in dict.fromkeys(_waited_in(one) for one in others if one.failure is not None and one.is_echo):
        numbers = [one.number for one in others if one.failure is not None and one.is_echo and _waited_in(one) == what]
        parts.append(f"{name_ranks(numbers)} failed after it{f', in {what}' if what else ''}")
    own = [one.number for one in others if one.failure is not None and not one.is_echo]
    if own:
        parts.append(
            f"{name_ranks(own)} failed later by themselves" if len(own) > 1 else f"rank {own[0]} failed later by itself"
        )
    ended = [one for one in others if one.failure is None and not one.process.is_ended]
    for what in dict.fromkeys(_stood_in(one) for one in ended):
        numbers = [one.number for one in ended if _stood_in(one) == what]
        parts.append(
            f"{name_ranks(numbers)} {'were' if len(numbers) > 1 else 'was'} ended{f' in {what}' if what else ''}"
        )
    return "; " + "; ".join(parts) if parts else ""


def _waited_in(rank: _Rank) -> str:
    """The collective in which a victim failed: the one that had not returned, else what the traceback shows."""
    failure = rank.failure
    if failure is None:
        return _stood_in(rank)
    entered = failure.collectives[-1] if failure.collectives else None
    if entered is not None and not entered.is_done:
        return entered.op
    return _function_of(
        [frame for one in read_text(failure.text) for record in one.exceptions for frame in record.frames]
    )


def _stood_in(rank: _Rank) -> str:
    """The collective in which a rank stands, by its stack; "" where it stands in none."""
    entered = rank.process.collectives[-1] if rank.process.collectives else None
    if entered is not None and not entered.is_done:
        return entered.op
    return _function_of(rank.process.stack)


def _function_of(frames: Sequence[Frame]) -> str:
    """The function of torch.distributed that the program called, or a backward that reduces gradients."""
    paths = [(frame, frame.file.replace("\\", "/")) for frame in frames]
    for frame, path in paths:
        if path.endswith("torch/distributed/distributed_c10d.py") and frame.function not in (None, "wrapper"):
            return str(frame.function)
        if any(word in path for word in _DISTRIBUTED) and path.endswith(_RENDEZVOUS[0]):
            return "init_process_group"
    if frames and frames[-1].function in ("_engine_run_backward", "run_backward"):
        return "a backward that reduces gradients"
    if any(path.endswith("torch/nn/parallel/distributed.py") for _, path in paths):
        return "DistributedDataParallel"
    last = frames[-1] if frames else None
    return "wait" if last is not None and ".wait(" in (last.code or "") else ""


def _tell_gone(ranks: Sequence[_Rank], gone: Sequence[_Rank], how: str) -> Told:
    """One that left or was killed was the first; the others lost it."""
    first = gone[0]
    others = _after_words([one for one in ranks if one not in gone[1:]], first)
    behind = f" after {_count(first)} collectives" if _count(first) is not None else ""
    says = [f"{name_ranks(one.number for one in gone)} {how}{behind}{others}"]
    story = _story(ranks, first, says, is_sure=len(gone) == 1)
    place = _place(first.process.stack, f"rank {first.number} stood here")
    return Told(story=replace(story, place=place))


def _place(frames: Sequence[Frame], why: str) -> Culprit | None:
    """The program's own line among some frames, nearest to where they end."""
    frame = next((frame for frame in reversed(frames) if frame.library is None), None)
    if frame is None:
        return None
    return Culprit(file=frame.file, line=frame.line, function=frame.function, code=frame.code, why=why)


def _count(rank: _Rank) -> int | None:
    """How many collectives a rank has started: by its process group, else as counted in Python."""
    failure = rank.failure
    of = failure if failure is not None and failure.sequence is not None else rank.process
    return of.sequence if of.sequence is not None else (of.collectives[-1].number if of.collectives else None)


def _tell_differing(ranks: Sequence[_Rank]) -> Told | None:
    """Ranks that called different collectives as the same number, or gave them different shapes."""
    kept: dict[int, dict[int, Collective]] = {}
    for rank in ranks:
        for one in rank.failure.collectives if rank.failure is not None else rank.process.collectives:
            if one.group is None:
                kept.setdefault(one.number, {})[rank.number] = one
    for number in sorted(kept):
        at = kept[number]
        kinds = Counter(_kind(one) for one in at.values())
        if len(kinds) > 1 and len(at) > 1:
            return _differing(ranks, number, at, kinds)
    return None


_UNEVEN = frozenset(
    ("all_gather_object", "gather", "scatter", "gather_object", "scatter_object_list", "broadcast_object_list",
     "send", "recv", "isend", "irecv", "all_to_all", "all_to_all_single", "all_gather")
)  # fmt: skip


def _kind(one: Collective) -> str:
    """What must be the same on all ranks; point-to-point calls differ by nature, and some take shapes of any kind."""
    if one.op in ("send", "recv", "isend", "irecv"):
        return "send or recv"
    if one.shape is None or one.op in _UNEVEN:
        return one.op
    return f"{one.op} of {list(one.shape)} {one.dtype}"


def _differing(ranks: Sequence[_Rank], number: int, at: dict[int, Collective], kinds: Counter[str]) -> Told:
    usual = kinds.most_common(1)[0][0]
    odd = [rank for rank, one in at.items() if _kind(one) != usual]
    rest = [rank for rank, one in at.items() if _kind(one) == usual]
    mine, op = at[odd[0]], usual.partition(" of ")[0]
    says = f"{name_ranks(odd)} called {_kind(mine)} as collective {number}, {name_ranks(rest)} {usual}"
    first = next(one for one in ranks if one.number == odd[0])
    is_sure = kinds.most_common(1)[0][1] > len(odd)
    story = _story(ranks, first, [says], is_sure=is_sure)
    why = f"rank {first.number} calls {_kind(mine)} here, while {name_ranks(rest)} call{'s' if len(rest) == 1 else ''} {op}"
    story = replace(story, place=_place(_frames_of(first), why))
    return Told(story=story, line=f"{SEEN}the collectives of the ranks differ: {says}")


def _frames_of(rank: _Rank) -> tuple[Frame, ...]:
    """The frames of a rank's failure, or of its stack."""
    if rank.failure is None:
        return rank.process.stack
    read = [record for one in read_text(rank.failure.text) for record in one.exceptions]
    return read[-1].frames if read else ()


def _tell_hang(ranks: Sequence[_Rank]) -> Told:
    """Which ranks wait, in what, and which one has not come there."""
    counts = {one.number: _count(one) for one in ranks}
    most = max((count for count in counts.values() if count is not None), default=None)
    waiting = [one for one in ranks if _stood_in(one) and (most is None or counts[one.number] in (most, None))]
    elsewhere = [one for one in ranks if one not in waiting]
    missing = set(range(ranks[0].process.world or 0)) - set(counts)
    places = [
        f"{name_ranks(numbers)} wait{'s' if len(numbers) == 1 else ''} in {what}"
        for what, numbers in _by_place(waiting, _stood_in)
    ]
    for one in elsewhere:
        frame = next((frame for frame in reversed(one.process.stack) if frame.library is None), None)
        told = f"in {_short(frame)}" if frame is not None else "and told nothing of where"
        has_left = one.process.is_ended
        places.append(f"rank {one.number} {'had ended without an error' if has_left else f'is elsewhere, {told}'}")
    if missing:
        places.append(f"{name_ranks(missing)} never started, or not with this folder")
    first = elsewhere[0] if elsewhere and waiting else None
    why = f"rank {first.number} is here, while the others wait for it" if first is not None else "every rank waits here"
    if first is None and not waiting:
        why = f"rank {ranks[0].number} is here"
    says = "; ".join(places)
    story = _story(ranks, first, [says], is_sure=first is not None and len(elsewhere) == 1, is_late=True)
    place = _place((first or ranks[0]).process.stack, why)
    return Told(story=replace(story, place=place), line=f"{SEEN}{says}" if waiting else "")


def _tell_awaited(ranks: Sequence[_Rank], waited: Sequence[_Rank]) -> Told | None:
    """Where a collective timed out before the run did: the rank that the launcher then ended, and that stood in none."""
    raised = [one.failure for one in waited if one.failure is not None]
    first = min(raised, key=lambda one: one.time, default=None)
    if first is not None and not _TIMED_OUT.search(first.message):
        return None
    elsewhere = [
        one for one in ranks if one not in waited and one.failure is None and one.process.stack and not _stood_in(one)
    ]
    if not elsewhere or not waited:
        return None
    places = [
        f"{name_ranks(numbers)} wait{'s' if len(numbers) == 1 else ''} in {what or 'a collective'} until it times out"
        for what, numbers in _by_place(waited, _waited_in)
    ]
    for one in elsewhere:
        frame = next((frame for frame in reversed(one.process.stack) if frame.library is None), one.process.stack[-1])
        places.append(f"rank {one.number} is elsewhere, in {_short(frame)}")
    says = "; ".join(places)
    absent = elsewhere[0]
    place = _place(absent.process.stack, f"rank {absent.number} was here, while the others waited for it")
    story = _story(ranks, absent, [says], is_sure=len(elsewhere) == 1)
    return Told(story=replace(story, place=place), line=f"{SEEN}{says}")


def _by_place(waiting: Iterable[_Rank], where: Callable[[_Rank], str]) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for one in waiting:
        found.setdefault(where(one), []).append(one.number)
    return list(found.items())


def _short(frame: Frame) -> str:
    name = frame.file.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{frame.line} ({frame.function})"


def _story(
    ranks: Sequence[_Rank], first: _Rank | None, says: Sequence[str], *, is_sure: bool, is_late: bool = False
) -> RankStory:
    begun = first.failure.time if first is not None and first.failure is not None else None
    rows = tuple(_row(one, first, begun, is_late=is_late) for one in ranks)
    return RankStory(
        first=first.number if first is not None else None, is_sure=is_sure, says=tuple(says), odd=tuple(_odd(ranks)), rows=rows
    )  # fmt: skip


def _row(one: _Rank, first: _Rank | None, begun: float | None, *, is_late: bool) -> RankRow:
    failure = one.failure
    what = f"{failure.type}: {failure.message.splitlines()[0][:120] if failure.message else ''}" if failure else ""
    if is_late:
        role = WAITING if first is not one and _stood_in(one) else DONE if one.process.is_ended else ELSEWHERE
        what = ""
    else:
        role = VICTIM if failure is not None else DONE if one.process.is_ended else ENDED
        role = FIRST if one is first else role
    after = round(failure.time - begun, 3) if failure is not None and begun is not None else None
    return RankRow(
        rank=one.number, role=role, what=what or one.process.fault, node=one.process.node, collective=_waited_in(one) or None,
        after=after, steps=failure.steps if failure is not None else one.process.steps,
    )  # fmt: skip


def _odd(ranks: Sequence[_Rank]) -> Iterable[str]:
    """In what one rank differs from all others: versions, device, shapes in the same function, steps."""
    yield from _odd_of({one.number: dict(one.process.software) for one in ranks if one.process.software}, "runs with")
    places = Counter(one.failure.at for one in ranks if one.failure is not None and one.failure.tensors)
    if places:
        usual = places.most_common(1)[0][0]
        at = {
            one.number: dict(one.failure.tensors)
            for one in ranks
            if one.failure is not None and one.failure.at == usual
        }
        yield from _odd_of(at, "holds", f" in {usual}")
    steps = {one.number: {"optimizer steps": str(one.process.steps)} for one in ranks if one.process.steps is not None}
    yield from _odd_of(steps, "has made")


def _odd_of(values: dict[int, dict[str, str]], verb: str, where: str = "") -> Iterable[str]:
    """What all ranks but a few have in common, and those few have not."""
    for name in dict.fromkeys(name for one in values.values() for name in one):
        held = {rank: one[name] for rank, one in values.items() if name in one}
        kinds = Counter(held.values())
        usual, often = kinds.most_common(1)[0]
        odd = [rank for rank, value in held.items() if value != usual]
        if odd and len(held) > 2 and len(odd) * 2 < len(held) and often > len(odd):
            told = ", ".join(dict.fromkeys(held[rank] for rank in odd))
            yield f"{name_ranks(odd)} {verb} {name} {told}{where}, the other ranks {usual}"
