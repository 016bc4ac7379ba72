"""Files replaced whole or not at all: a file beside the old one, synced to disk, then renamed over it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_SECOND = 1_000_000_000
_ENDS = [number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None))]


def stage_file(path: str, data: bytes, temporary: str, mode: int) -> None:
    """Write `data` to `temporary`, a new file beside `path`, with the owner and attributes of `path` and with `mode`.

    Raises:
        OSError: it cannot be written; nothing is left of it then.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600)
    try:
        write_all(descriptor, data)
        _take_after(path, descriptor, mode)
        os.fsync(descriptor)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)


def swap_in(temporary: str, path: str) -> None:
    """Rename a staged file over `path`, for good."""
    os.replace(temporary, path)
    sync_folder(os.path.dirname(path))


def replace_file(path: str, data: bytes, temporary: str, mode: int) -> None:
    """`path` holds `data` afterwards, or, when this is cut short, what it held before."""
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    stage_file(path, data, temporary, mode)
    swap_in(temporary, path)


def temporary_of(path: str, token: str) -> str:
    """Where the new content of a file lies until it is renamed: beside it, by a name that a later start finds again."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name[:100]}.{token}.gradfix")


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(folder: str) -> None:
    """Make the names in a folder last; a file system that cannot is left alone."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def hold_signals() -> Iterator[Callable[[], bool]]:
    """Hold Ctrl-C and polite ends back for a while; gives what tells whether one is waiting.

    Only the main thread is ever interrupted by them, so that elsewhere there is nothing to hold.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    waiting: list[int] = []
    # Handlers, not a mask: a mask holds for one thread, and the system may hand the signal to another.
    handlers = {one: handler for one in _ENDS if (handler := signal.getsignal(one)) not in (None, signal.SIG_IGN)}
    for one in handlers:
        signal.signal(one, lambda number, _: waiting.append(number))
    try:
        yield lambda: bool(waiting)
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)
        for number in waiting[:1]:
            signal.raise_signal(number)


def _take_after(path: str, descriptor: int, mode: int) -> None:
    """Give a new file the owner (where that is allowed), the extended attributes and the mode of the one it replaces."""
    try:
        old = os.stat(path)
    except FileNotFoundError:
        os.fchmod(descriptor, mode)
        return
    new = os.fstat(descriptor)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
            with suppress(PermissionError):
                os.fchown(descriptor, owner, group)
    _copy_attributes(path, descriptor)
    os.fchmod(descriptor, mode)  # after the owner, whose change takes bits away
    if new.st_size == old.st_size and int(new.st_mtime) == int(old.st_mtime):
        # Python takes a .pyc for fresh when size and second agree: the new text would not be compiled.
        os.utime(descriptor, ns=(new.st_atime_ns, old.st_mtime_ns + _SECOND))


def _copy_attributes(path: str, descriptor: int) -> None:
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):  # a file system without them
        for name in os.listxattr(path):
            with suppress(OSError):  # one that only the system may set
                os.setxattr(descriptor, name, os.getxattr(path, name))
