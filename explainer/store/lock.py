"""One gradfix at a time changes a project: a lock that ends with the process that holds it, however it ends."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from explainer.disk import write_all

PATIENCE = 5.0
_PAUSE = 0.05


class Locked(Exception):
    """Another gradfix holds the lock; the text names it."""


@contextmanager
def hold_lock(folder: str, purpose: str, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock of a project's state folder.

    Raises:
        Locked: another process held it for longer than `patience` seconds.
        OSError: the folder cannot be written.
    """
    descriptor = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _wait(descriptor, patience)
        os.ftruncate(descriptor, 0)
        write_all(descriptor, f"process {os.getpid()} ({purpose})".encode("utf-8", "replace"))
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, patience: float) -> None:
    try:
        import fcntl
    except ImportError:
        raise Locked(
            "files are changed on Linux and macOS only: this system has no locks that end with their process"
        ) from None
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                holder = os.pread(descriptor, 400, 0).decode("utf-8", "replace") or "another process"
                raise Locked(f"{holder} is changing this project; try again when it has ended") from None
            time.sleep(_PAUSE)
        else:
            return
