"""The steps of a run while it is on, as its processes tell them into the folder of their reports."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

from explainer.errors import Stopped
from explainer.model.verification import LiveStep
from explainer.verification.command import OnWait

STEPS = ".steps"
OnStep = Callable[[LiveStep], None]
IsStopped = Callable[[], bool]


class StepReader:
    """Passes on what was told since the last time; a line that is not whole yet waits."""

    def __init__(self, folder: str, on_step: OnStep) -> None:
        self._folder = folder
        self._on_step = on_step
        self._read: dict[str, int] = {}

    def read(self) -> None:
        """Pass on what is new."""
        for name in sorted(os.listdir(self._folder)):
            if name.endswith(STEPS):
                self._read_one(name)

    def _read_one(self, name: str) -> None:
        with open(os.path.join(self._folder, name), "rb") as file:
            file.seek(self._read.get(name, 0))
            whole, end, _ = file.read().rpartition(b"\n")
        self._read[name] = self._read.get(name, 0) + len(whole) + len(end)
        for line in whole.splitlines():
            self._on_step(LiveStep(**json.loads(line)))


def waiting(folder: str, on_step: OnStep | None, is_stopped: IsStopped | None) -> tuple[OnWait, OnWait]:
    """What is to be done while a command runs, and once more at its end.

    The first raises `Stopped` where the caller asks for it.
    """
    reader = StepReader(folder, on_step) if on_step is not None else None

    def on_wait() -> None:
        if is_stopped is not None and is_stopped():
            raise Stopped("stopped")
        at_end()

    def at_end() -> None:
        if reader is not None:
            reader.read()

    return on_wait, at_end
