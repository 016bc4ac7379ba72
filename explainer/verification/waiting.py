"""Whether a watched command only waits for processes that have made their steps and left.

A script that trains in children and takes their results from a queue would wait for ever: what trained has ended with the
steps that were asked for, and before it had a result.
"""

from __future__ import annotations

import time

from explainer.verification.family import descendants, processor_time
from explainer.verification.judge import is_done
from explainer.verification.live_report import read_reports

QUIET = 5.0  # seconds in which nothing of the command computes
_LOOK = 1.0
_BUSY = 0.02  # processor seconds in a second: what polls a queue uses less


class Waiting:
    """Asked several times a second with the command's process number."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._looked = self._quiet_since = time.monotonic()
        self._used: float | None = None

    def __call__(self, pid: int) -> bool:
        """Whether everything that trains has made its steps, and nothing has computed since."""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return False
        used = processor_time([pid, *descendants(pid)])
        if used is None or self._used is None or abs(used - self._used) > _BUSY * (now - self._looked):
            self._quiet_since = now
        self._looked, self._used = now, used
        return now - self._quiet_since >= QUIET and is_done(read_reports(self._folder))
