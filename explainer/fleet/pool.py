"""The local engine: a pool of processes, each reading one object after another; one that dies is replaced.

A pool of our own, because those of the standard library end as a whole when one of their processes is killed, and do not
tell which object it was reading.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from explainer.errors import CannotStart
from explainer.fleet.explained import killed_row
from explainer.fleet.row import Reading, reading_of
from explainer.fleet.source import Source
from explainer.fleet.worker import READY, serve

AHEAD = 3  # objects that a process has at hand, so that it never waits for us
TRIES = 2
PATIENCE = 3600.0  # seconds for one object; a store that hangs would hold a process for ever
_PATIENCE_AT_START = 300.0
_FAREWELL = 5.0
_TICK = 0.25
_MAX_STILLBORN = 3
_LARGE = 16 << 20

Answer = tuple[int, Reading]


class Settings(NamedTuple):
    """What a run of the pool needs to know: the rules of the user's own, and how many processes."""

    knowledge: str | None
    workers: int
    patience: float = PATIENCE


class _Worker:
    """A process of the pool, and the objects that it was given and has not answered, in their order."""

    def __init__(self, settings: Settings) -> None:
        context = multiprocessing.get_context("spawn")
        self.pending: deque[int] = deque()
        self.is_ready = False
        self.since = time.monotonic()
        ours, theirs = context.Pipe()
        self.link: Connection = ours
        self.process: BaseProcess = context.Process(target=serve, args=(theirs, settings.knowledge), daemon=True)
        with _without_interrupts():
            self.process.start()
        theirs.close()

    def give(self, index: int, source: Source) -> None:
        """Hand an object over; a process that has died is noticed when its answer is read."""
        if not self.pending:
            self.since = time.monotonic()
        self.pending.append(index)
        with suppress(OSError):
            self.link.send((index, source))

    def stop(self) -> None:
        """End the process at once, with what it reads."""
        self.link.close()
        self.process.kill()
        self.process.join(_FAREWELL)  # one that hangs in the kernel, on a store that is gone, is left behind


class Pool:
    """Explains objects in processes of this machine."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._workers: list[_Worker] = []
        self._queue: deque[int] = deque()
        self._deaths: Counter[int] = Counter()
        self._stillborn = 0

    def run(self, sources: Sequence[Source], is_stopped: Callable[[], bool]) -> Iterator[Answer]:
        """What came of each object with its place in `sources`, as they come; ends early where `is_stopped` says so.

        An object whose process dies is tried once more, then answered with a row that says so.

        Raises:
            CannotStart: processes die before they have read anything.
        """
        # The largest first: one that is begun last would be waited for alone. The others in their order.
        sizes = [source.size or 0 for source in sources]
        self._queue.extend(sorted(range(len(sources)), key=lambda at: -sizes[at] if sizes[at] > _LARGE else 0))
        count = min(self._settings.workers, max(len(sources), 1))
        try:
            self._workers.extend(_Worker(self._settings) for _ in range(count if sources else 0))
            left = len(sources)
            while left and not is_stopped():
                self._hand_out(sources)
                for answer in self._collect(sources):
                    left -= 1
                    yield answer
        finally:
            for worker in self._workers:
                worker.stop()

    def _hand_out(self, sources: Sequence[Source]) -> None:
        for depth in range(1, AHEAD + 1):
            for worker in self._workers:
                if self._queue and len(worker.pending) < depth:
                    # What killed a process once is tried alone: another one's death is then not laid at its door.
                    index = self._queue[0]
                    if self._deaths[index] and worker.pending:
                        continue
                    worker.give(self._queue.popleft(), sources[index])

    def _collect(self, sources: Sequence[Source]) -> Iterator[Answer]:
        ready = set(wait([worker.link for worker in self._workers], timeout=_TICK))
        for at, worker in enumerate(self._workers):
            if worker.link in ready:
                try:
                    message = worker.link.recv()
                except (EOFError, OSError):
                    yield from self._replace(at, sources)
                    continue
                if message == READY:
                    worker.is_ready, self._stillborn = True, 0
                    worker.since = time.monotonic()
                    continue
                worker.pending.popleft()
                worker.since = time.monotonic()
                yield message
            elif worker.pending and time.monotonic() - worker.since > self._patience(worker):
                yield from self._replace(at, sources)

    def _patience(self, worker: _Worker) -> float:
        return self._settings.patience if worker.is_ready else _PATIENCE_AT_START

    def _replace(self, at: int, sources: Sequence[Source]) -> Iterator[Answer]:
        """Put a new process in a dead one's place; what it had at hand goes back, what it was reading is its suspect."""
        dead = self._workers[at]
        dead.stop()
        if not dead.is_ready:
            self._stillborn += 1
            if self._stillborn >= _MAX_STILLBORN:
                raise CannotStart(f"processes that read logs end at once (exit status {dead.process.exitcode})")
        elif dead.pending:
            suspect = dead.pending[0]
            self._deaths[suspect] += 1
            if self._deaths[suspect] >= TRIES:
                dead.pending.popleft()
                yield suspect, reading_of([killed_row(sources[suspect])])
        self._queue.extendleft(reversed(dead.pending))
        self._workers[at] = _Worker(self._settings)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """A process started in here never sees Ctrl-C, which a terminal sends to all: ending it is for us to do."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
