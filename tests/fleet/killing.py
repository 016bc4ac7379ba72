"""Ends processes that read a certain pipe, and no others: what the out-of-memory killer does to a reader of a huge log."""

from __future__ import annotations

import os
import pathlib
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def readers_killed(pipe: pathlib.Path) -> Iterator[list[int]]:
    """While this holds, every process that opens the pipe to read it is killed; gives the list of those that were."""
    killed: list[int] = []
    is_over = threading.Event()
    thread = threading.Thread(target=_kill, args=(str(pipe), killed, is_over), daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        is_over.set()
        thread.join()


def _kill(pipe: str, killed: list[int], is_over: threading.Event) -> None:
    held = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)  # held open: no reader ever sees its end
    try:
        while not is_over.wait(0.02):
            for pid in _processes():
                if pid not in killed and _reads(pid, pipe):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
    finally:
        os.close(held)


def _processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid())


def _reads(pid: int, pipe: str) -> bool:
    """Whether a process has the pipe open to read alone; one that we have just forked has our own end for a moment."""
    try:
        held = [name for name in os.listdir(f"/proc/{pid}/fd") if os.readlink(f"/proc/{pid}/fd/{name}") == pipe]
        return any(_mode(pid, name) == os.O_RDONLY for name in held)
    except OSError:
        return False


def _mode(pid: int, descriptor: str) -> int:
    flags = pathlib.Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text().partition("flags:")[2].split()[0]
    return int(flags, 8) & os.O_ACCMODE
