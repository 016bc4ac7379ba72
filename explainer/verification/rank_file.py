"""The ranks of a job as their files tell: reports, signs of life, stacks, and clocks brought to one time.

Times are seconds of the folder's own clock, which is one for all nodes of a shared file system.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from explainer.ingest.library import own
from explainer.live.rank import ALIVE, GIVEN
from explainer.model.incident import Frame
from explainer.model.rank import Collective

STACK = ".stack"
_NAMED = ("RANK", GIVEN)  # a rank that torchrun or torch.distributed gave
_TICK = 0.01  # how coarse the time of a file may be on a local file system
_SAME_NODE = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFailure:
    """A failure that a rank noted, at a time with an error, both in seconds; `tensors` by name in its own frame, at `at`."""

    type: str
    message: str
    text: str
    where: str
    time: float
    steps: int
    collectives: tuple[Collective, ...] = ()
    sequence: int | None = None
    tensors: tuple[tuple[str, str], ...] = ()
    at: str = ""
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankProcess:
    """One rank of one attempt. Without a report it was ended from outside (`stack` holds where it stood), or vanished.

    `error` bounds in seconds by how much its times may be off against another node's. `stack` are the frames of its main
    thread, outermost first; `fault` the fatal error that faulthandler names, `is_foreign` where no Python thread met it.
    """

    rank: int
    pid: int
    node: str
    boot: str
    source: str
    attempt: int = 0
    world: int | None = None
    error: float = _SAME_NODE
    has_report: bool = False
    is_ended: bool = False
    last: float | None = None
    steps: int | None = None
    failures: tuple[RankFailure, ...] = ()
    collectives: tuple[Collective, ...] = ()
    sequence: int | None = None
    software: tuple[tuple[str, str], ...] = ()
    stack: tuple[Frame, ...] = ()
    fault: str = ""
    is_foreign: bool = False

    def is_comparable(self, other: RankProcess) -> float:
        """By how many seconds a time of this rank may be off against the other's."""
        return _SAME_NODE if self.boot == other.boot else self.error + other.error


def read_ranks(folder: str) -> tuple[RankProcess, ...]:
    """The ranks of the last attempt in a folder of reports, by number; () where the job has none."""
    reports = {(one["place"]["node"], one["pid"]): one for _, one in _read_all(folder, ".json") if "place" in one}
    found: dict[tuple[int, int], RankProcess] = {}
    offsets = _offsets([one for _, one in read_alive(folder)])
    for one in read_started(folder):
        place = one["place"]
        report = reports.get((place["node"], one["pid"]))
        process = _process(one, report, offsets, os.path.join(folder, f"{one['pid']}@{place['node']}{STACK}"))
        key = (process.attempt, process.rank)
        if key not in found or _precedes(process, found[key]):
            found[key] = process
    last = max((attempt for attempt, _ in found), default=0)
    return tuple(found[key] for key in sorted(found) if key[0] == last)


def read_alive(folder: str) -> list[tuple[str, dict[str, Any]]]:
    """What each process of a run has said when it started, by the name of its file."""
    return list(_of_last_launches(folder, _read_all(folder, ALIVE)))


def read_started(folder: str) -> list[dict[str, Any]]:
    """The processes of a run that are ranks, launchers and helpers left out, in the order in which they started."""
    alive = [one for _, one in read_alive(folder)]
    return [one for one in _newest(alive) if one["place"]["rank"] is not None and not one["place"]["helper"]]


def _of_last_launches(folder: str, alive: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Without what an earlier start of the same run has left.

    The last launch of each task of a node counts, if it lived with the others, and whatever else did. A temporary folder is
    that of one launch, and names none.
    """
    launches = read_launches(folder)
    newest = {(one["node"], one.get("task")): one for one in launches}
    last = max((one["started"] for one in newest.values()), default=0.0)
    current = {one["launch"] for one in newest.values() if not one.get("ended")}
    current |= {one["launch"] for one in launches if (one.get("ended") or 0.0) >= last}
    for name, one in alive:
        if not newest or one.get("launch") in current:
            yield name, one


def read_launches(folder: str) -> list[dict[str, Any]]:
    """What each `gradfix run` of a job has left in its folder, oldest first."""
    found = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if name.startswith("run.") and name.endswith(".json"):
            try:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found.append(json.load(file))
            except (OSError, ValueError):
                continue
    wanted = ("launch", "node", "started")
    return sorted((one for one in found if all(key in one for key in wanted)), key=lambda one: float(one["started"]))


def _precedes(one: RankProcess, other: RankProcess) -> bool:
    """Whether a process is the rank rather than its launcher on the node, which Slurm and MPI number too."""
    return one.source in _NAMED or other.source not in _NAMED


def _newest(alive: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without processes that Slurm numbers where others were given their rank."""
    named = [one for one in alive if one["place"]["source"] in _NAMED]
    return sorted(named or alive, key=lambda one: one["place"]["wall"])


def _read_all(folder: str, ending: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in sorted(os.listdir(folder)):
        if name.endswith(ending) and not name.startswith("run."):
            try:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    read = json.load(file)
            except (OSError, ValueError):
                continue
            if isinstance(read, dict) and "pid" in read:
                yield name, read


def _offsets(alive: Sequence[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """For each node since its start: what makes a monotonic time one of the folder's clock, and the error of that.

    Of several processes of a node the one whose file was written fastest says it best.
    """
    best: dict[str, tuple[float, float]] = {}
    for one in alive:
        clock, place = one["clock"], one["place"]
        between = (clock["before"] + clock["after"]) / 2
        error = (clock["after"] - clock["before"]) / 2 + (1.0 if clock["stamped"] == int(clock["stamped"]) else _TICK)
        offset = place["wall"] - place["monotonic"] + clock["stamped"] - between
        if place["boot"] not in best or error < best[place["boot"]][1]:
            best[place["boot"]] = offset, error
    return best


def _process(
    alive: dict[str, Any], report: dict[str, Any] | None, offsets: dict[str, tuple[float, float]], stack: str
) -> RankProcess:
    place = alive["place"]
    offset, error = offsets[place["boot"]]
    report = report or {}
    standing = _standing(report, stack)
    return RankProcess(
        rank=place["rank"], pid=alive["pid"], node=place["node"], boot=place["boot"], source=place["source"],
        attempt=place["attempt"], world=place["world"], error=error, has_report=bool(report), is_ended=bool(report.get("ended")),
        last=report["now"]["monotonic"] + offset if report else None,
        steps=sum(report.get("steps", {}).values()) if report else None,
        failures=tuple(_failure(one, offset) for one in report.get("failures", ()) if "monotonic" in one),
        collectives=tuple(_collective(one) for one in report.get("collectives", ())), sequence=report.get("sequence"),
        software=tuple((name, str(value)) for name, value in report.get("with", {}).items()),
        stack=standing.frames, fault=standing.fault, is_foreign=standing.is_foreign,
    )  # fmt: skip


def _failure(raw: dict[str, Any], offset: float) -> RankFailure:
    return RankFailure(
        type=raw["type"], message=raw["message"], text=raw.get("text", ""), where=raw["where"],
        time=raw["monotonic"] + offset, steps=sum(raw.get("steps", {}).values()),
        collectives=tuple(_collective(one) for one in raw.get("collectives", ())), sequence=raw.get("sequence"),
        tensors=tuple(raw.get("tensors", {}).items()), at=raw.get("at", ""), raw=raw,
    )  # fmt: skip


def _collective(raw: dict[str, Any]) -> Collective:
    shape = raw.get("shape")
    return Collective(
        op=raw["op"], number=raw["number"], shape=None if shape is None else tuple(shape), dtype=raw.get("dtype"),
        group=raw.get("group"), is_done=bool(raw.get("done")),
    )  # fmt: skip


def read_alone(folder: str) -> tuple[Frame, ...]:
    """Where the main thread of the program stands that is no rank: of its Python processes the last one that shows its own code."""
    found: tuple[Frame, ...] = ()
    reports = {one["pid"]: one for _, one in _read_all(folder, ".json")}
    for one in sorted((one for _, one in _read_all(folder, ALIVE)), key=lambda one: float(one["place"]["wall"])):
        path = os.path.join(folder, f"{one['pid']}@{one['place']['node']}{STACK}")
        frames = _standing(reports.get(one["pid"], {}), path).frames
        if any(frame.library is None for frame in frames):
            found = frames
    return found


class Standing(NamedTuple):
    """Where a main thread stood, outermost first, with the fatal error, and whether a thread without Python met that."""

    frames: tuple[Frame, ...] = ()
    fault: str = ""
    is_foreign: bool = False


def _standing(report: dict[str, Any], path: str) -> Standing:
    """Where the main thread stood: as the process told, else as faulthandler wrote from C."""
    for thread in report.get("stacks", ()):
        if thread["is_main"]:
            return Standing(tuple(own(Frame(**one)) for one in thread["frames"]))
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return read_fault(file.read(1 << 20))
    except OSError:
        return Standing()


_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.+)')


def read_fault(text: str) -> Standing:
    """What faulthandler wrote last.

    Threads stand newest first, so that the main one comes last; a written stack ends where the next one begins. The thread
    that met the error is the current one; where there is none it runs no Python, as those of NCCL's watchdog.
    """
    fault = list(re.finditer(r"^Fatal Python error: (.+)$", text, re.MULTILINE))
    blocks = re.split(r"^(?:Current thread|Thread) 0x[^\n]*\n", text, flags=re.MULTILINE)
    found = [_FRAME.match(line) for line in blocks[-1].splitlines()] if len(blocks) > 1 else []
    frames = [
        own(Frame(file=one["file"], line=int(one["line"]), function=one["function"]))
        for one in found
        if one is not None
    ]
    is_foreign = bool(fault) and "Current thread 0x" not in text[fault[-1].end() :]
    return Standing(tuple(reversed(frames)), fault[-1][1] if fault else "", is_foreign)
