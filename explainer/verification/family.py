"""The processes that a command has started, as Linux tells them, so that none of them outlives an end that was asked for."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress

_PARENT, _USER, _SYSTEM, _STARTED = 1, 11, 12, 19  # fields of /proc/PID/stat, counted after the name


def descendants(pid: int) -> dict[int, str]:
    """The living processes below `pid`, each with the time at which it started; {} where there is no /proc."""
    below: dict[int, list[int]] = defaultdict(list)
    started: dict[int, str] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        fields = _fields(name) if name.isdigit() else None
        if fields is not None:
            below[int(fields[_PARENT])].append(int(name))
            started[int(name)] = fields[_STARTED]
    found: dict[int, str] = {}
    queue = [pid]
    while queue:
        for child in below.get(queue.pop(), ()):
            found[child] = started[child]
            queue.append(child)
    return found


def began(pid: int) -> str | None:
    """When a living process began, as the system counts; None where it has ended."""
    fields = _fields(str(pid))
    return fields[_STARTED] if fields is not None else None


def processor_time(pids: Iterable[int]) -> float | None:
    """The seconds of processor time that living processes have used so far; None where the system does not tell."""
    found = [fields for pid in pids if (fields := _fields(str(pid))) is not None]
    if not found:
        return None
    return sum(int(one[_USER]) + int(one[_SYSTEM]) for one in found) / os.sysconf("SC_CLK_TCK")


def end_left(family: dict[int, str], number: signal.Signals) -> None:
    """Send a signal to those that live on; a process that has taken the number of one that ended is left alone."""
    for pid in _left(family):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def any_left(family: dict[int, str]) -> bool:
    """Whether one of them lives on."""
    return any(True for _ in _left(family))


def _left(family: dict[int, str]) -> Iterator[int]:
    for pid, began in family.items():
        fields = _fields(str(pid))
        if fields is not None and fields[_STARTED] == began:
            yield pid


def _fields(name: str) -> list[str] | None:
    """The fields of a process after its name, which may hold spaces and brackets; None where it has ended."""
    try:
        with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return fields if len(fields) > _STARTED and fields[0] != "Z" else None
