"""Runs a command as the user would have: its output live and unchanged, its terminal, its signals, its exit status."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import selectors
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from explainer.errors import CannotStart
from explainer.verification.family import any_left, descendants, end_left

CHUNK = 1 << 16
_AFTER_END = 0.3  # how long output of grandchildren is waited for once the command has ended
_GRACE = 5.0  # between SIGTERM and SIGKILL

OUT, ERR = 1, 2
OnOutput = Callable[[int, bytes], None]
OnWait = Callable[[], None]
IsEnough = Callable[[int], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended: `status` as a shell gives it (128 + n for signal n).

    `is_late` where it ran out of time; `is_asked` where a signal came for it: from the keyboard, or passed on by us.
    """

    status: int
    seconds: float
    is_late: bool = False
    is_asked: bool = False

    @property
    def signal_name(self) -> str | None:
        """The signal that ended it, or None."""
        return signal_name(self.status)


_KNOWN = {one.value for one in signal.Signals}


def signal_name(status: int) -> str | None:
    """The signal that an exit status stands for, as a shell gives it, or None."""
    return signal.Signals(status - 128).name if status - 128 in _KNOWN else None


def run_command(  # noqa: PLR0913 - what a shell would be told
    command: Sequence[str],
    *,
    environment: dict[str, str],
    folder: str | None = None,
    on_output: OnOutput,
    timeout: float | None = None,
    is_shown: bool = True,
    on_wait: OnWait | None = None,
    on_late: OnWait | None = None,
    is_enough: IsEnough | None = None,
) -> Ended:
    """Run `command` to its end, giving each piece of its output to `on_output(stream, bytes)` as it comes.

    With `is_shown` a stream of ours that is a terminal is one for the command too, of the same size. Ctrl-C goes to the
    command, by the terminal itself; SIGTERM and SIGHUP are passed on, and what the command started and left behind is
    ended too. A command that is not shown is ended by any of them, with all that it started, and so are we.
    `on_wait` is called several times a second while the command runs; where it raises, a command that is not shown is ended.
    After `timeout` seconds it is ended with all that it started, SIGTERM first; `on_late` is called before that. A command
    that is not shown is ended so too where `is_enough`, asked with its process number, says that nothing more will come.

    Raises:
        CannotStart: there is no such program.
        SystemExit, KeyboardInterrupt: a signal came while a command ran that is not shown.
    """
    start = time.monotonic()
    streams = [_Stream(number, is_shown) for number in (OUT, ERR)]
    try:
        child = subprocess.Popen(
            command, stdout=streams[0].theirs, stderr=streams[1].theirs, env=environment, cwd=folder,
            stdin=None if is_shown else subprocess.DEVNULL, start_new_session=not is_shown,
        )  # fmt: skip
    except OSError as error:
        for stream in streams:
            stream.close()
            os.close(stream.theirs)
        raise CannotStart(f"{command[0]}: {(error.strerror or str(error)).lower()}") from error
    for stream in streams:
        os.close(stream.theirs)
    try:
        with _Signals(child, streams, is_shown=is_shown) as signals:
            deadline = start + timeout if timeout is not None else None
            late = _Late(deadline, on_late, is_shown=is_shown)

            def meanwhile() -> None:
                if on_wait is not None:
                    on_wait()
                late.end_when_due(child)
                if is_enough is not None and not is_shown and child.poll() is None and is_enough(child.pid):
                    _end(child)

            try:
                _pump(child, streams, on_output, meanwhile)
            finally:
                late.join()
            status = child.wait()
            signals.end_family()
    finally:
        if not is_shown:
            _end(child)
    return Ended(
        status=128 - status if status < 0 else status, seconds=time.monotonic() - start, is_late=late.is_late,
        is_asked=signals.is_asked,
    )  # fmt: skip


class _Stream:
    """One of the command's output streams: a pseudo-terminal where ours is one, else a pipe."""

    def __init__(self, number: int, is_shown: bool) -> None:  # noqa: FBT001
        self.number = number
        self.is_terminal = is_shown and os.isatty(number)
        self.ours, self.theirs = pty.openpty() if self.is_terminal else os.pipe()
        self.resize()

    def resize(self) -> None:
        """Give the pseudo-terminal the size of ours."""
        if self.is_terminal:
            with suppress(OSError):
                size = fcntl.ioctl(self.number, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
                fcntl.ioctl(self.ours, termios.TIOCSWINSZ, size)

    def read(self) -> bytes:
        """What is there; nothing at the end."""
        try:
            return os.read(self.ours, CHUNK)
        except OSError as error:
            if error.errno == errno.EIO:  # a pseudo-terminal whose other side is closed
                return b""
            raise

    def close(self) -> None:
        """Close our side."""
        with suppress(OSError):
            os.close(self.ours)


def _pump(child: subprocess.Popen[bytes], streams: Sequence[_Stream], on_output: OnOutput, meanwhile: OnWait) -> None:
    """Pass output on until the command has ended and is silent."""
    quiet_since = None
    try:
        with selectors.DefaultSelector() as selector:
            for stream in streams:
                selector.register(stream.ours, selectors.EVENT_READ, stream)
            # A program may close both streams and go on.
            while selector.get_map() or child.poll() is None:
                if _pass_on(selector, on_output):
                    quiet_since = None
                meanwhile()
                if child.poll() is not None:
                    quiet_since = quiet_since or time.monotonic()
                    if time.monotonic() - quiet_since > _AFTER_END:
                        break
    finally:
        for stream in streams:
            stream.close()


class _Late:
    """Ends a command once its time is up; in another thread, so that its last words are still passed on."""

    def __init__(self, deadline: float | None, on_late: OnWait | None, *, is_shown: bool) -> None:
        self._deadline = deadline
        self._on_late = on_late
        self._is_shown = is_shown
        self._thread: threading.Thread | None = None
        self.is_late = False

    def end_when_due(self, child: subprocess.Popen[bytes]) -> None:
        """End it, once."""
        if self._deadline is None or self.is_late or time.monotonic() <= self._deadline or child.poll() is not None:
            return
        self.is_late = True
        self._thread = threading.Thread(target=self._end, args=(child,), daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until all that was to be ended has been."""
        if self._thread is not None:
            self._thread.join()

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        try:
            if self._on_late is not None:
                self._on_late()
        finally:
            (_end_shown if self._is_shown else _end)(child)


def _end_shown(child: subprocess.Popen[bytes]) -> None:
    """End a command that shares our group, and all that it started: SIGTERM, then SIGKILL."""
    family = descendants(child.pid)
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            child.send_signal(number)
        until = time.monotonic() + _GRACE
        while child.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        end_left(family, number)
        while any_left(family) and time.monotonic() < until:
            time.sleep(0.05)


def _pass_on(selector: selectors.BaseSelector, on_output: OnOutput) -> bool:
    """Pass on what has come within a moment; whether anything has."""
    has_come = False
    for key, _ in selector.select(0.1):
        data = key.data.read()
        if data:
            on_output(key.data.number, data)
            has_come = True
        else:
            selector.unregister(key.fileobj)
    return has_come


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a command that leads a group of its own, and all that it started: SIGTERM, then SIGKILL."""
    family = descendants(child.pid)
    for number in (signal.SIGTERM, signal.SIGKILL) if child.poll() is None else ():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE)
        if child.returncode is not None:
            break
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    end_left(family, signal.SIGKILL)


class _Signals:
    """While the command runs: Ctrl-C is its own, SIGTERM and SIGHUP are passed on, a resize reaches its terminals."""

    def __init__(self, child: subprocess.Popen[bytes], streams: Sequence[_Stream], *, is_shown: bool) -> None:
        self._child = child
        self._streams = streams
        self._is_shown = is_shown
        self._before: dict[int, object] = {}
        self._family: dict[int, str] = {}
        self.is_asked = False

    def __enter__(self) -> _Signals:
        if threading_is_elsewhere():
            return self
        self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._on_interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._pass_on)
        self._before[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, self._resize)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _on_interrupt(self, *_: object) -> None:
        self.is_asked = True
        # In the foreground the terminal has sent it to the command too; a watched command has a group of its own.
        if not self._is_shown:
            raise KeyboardInterrupt

    def _pass_on(self, number: int, _: object) -> None:
        self.is_asked = True
        if not self._is_shown:
            raise SystemExit(128 + number)
        self._family.update(descendants(self._child.pid))
        with suppress(ProcessLookupError):
            self._child.send_signal(number)

    def end_family(self) -> None:
        """End what a command that was asked to end has left running: a shell does not tell its children."""
        for number in (signal.SIGTERM, signal.SIGKILL) if self._family else ():
            end_left(self._family, number)
            until = time.monotonic() + _GRACE
            while any_left(self._family) and time.monotonic() < until:
                time.sleep(0.05)

    def _resize(self, *_: object) -> None:
        for stream in self._streams:
            stream.resize()


def threading_is_elsewhere() -> bool:
    """Whether this is not the main thread, where Python takes no signal handlers."""
    return threading.current_thread() is not threading.main_thread()


def show(stream: int, data: bytes) -> None:
    """Write a piece of output to our own stream of that number, whole."""
    out = sys.stdout.buffer if stream == OUT else sys.stderr.buffer
    try:
        out.write(data)
        out.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError):
        return
