"""What a run says while it is on, taken in by its thread and fetched by the interface now and then."""

from __future__ import annotations

import codecs
import threading
from collections import deque
from typing import TYPE_CHECKING

from explainer.ingest.terminal import strip_decoration
from explainer.render.visible import visible

if TYPE_CHECKING:
    from explainer.model.verification import LiveStep

MAX_LINES = 5000
MAX_LINE = 2000


class Live:
    """Lines of output and steps of one run. A flood of output costs lines, never memory or time of the interface."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._open = {1: "", 2: ""}
        self._decoders = {number: codecs.getincrementaldecoder("utf-8")("replace") for number in (1, 2)}
        self._steps: deque[LiveStep] = deque(maxlen=MAX_LINES)
        self._stop = threading.Event()

    def stop(self) -> None:
        """Ask the run to end."""
        self._stop.set()

    def is_stopped(self) -> bool:
        """Whether it was asked to end."""
        return self._stop.is_set()

    def on_output(self, stream: int, data: bytes) -> None:
        """Take in a piece of output; of a line that is overwritten (a progress bar) the last state stays."""
        text = self._open[stream] + self._decoders[stream].decode(data)
        *whole, rest = text.split("\n")
        with self._lock:
            self._open[stream] = rest[-MAX_LINE * 4 :]
            self._lines.extend(_shown(line) for line in whole[-MAX_LINES:])

    def tell(self, line: str) -> None:
        """Take in a line of our own."""
        with self._lock:
            self._lines.append(f"· {visible(line.strip())}")

    def on_step(self, step: LiveStep) -> None:
        """Take in a step."""
        with self._lock:
            self._steps.append(step)

    def fetch(self) -> tuple[list[str], list[LiveStep]]:
        """What came since the last time."""
        with self._lock:
            lines, steps = list(self._lines), list(self._steps)
            self._lines.clear()
            self._steps.clear()
        return lines, steps

    def rest(self) -> list[str]:
        """The lines that were begun and had no end."""
        with self._lock:
            found = [_shown(line) for line in self._open.values() if line.strip()]
            self._open = {1: "", 2: ""}
        return found


def _shown(line: str) -> str:
    last = line.removesuffix("\r").rpartition("\r")[2]
    return visible(strip_decoration(last).expandtabs(4))[:MAX_LINE]
