"""Parameters that are made between two steps of what a graph computes: each is a new leaf, at which that graph ends.

Torch tells no mode of them. What is made before the first step is the model, and with grad mode off weights are cut or copied on
purpose.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from .place import Places
from .starved import PARAMETER, Starved


class NewLeaves:
    """Logs such a parameter as an operation that took a graph and gave none."""

    def __init__(self, torch: Any, starved: Starved, places: Places, local: threading.local) -> None:
        self._torch = torch
        self._starved = starved
        self._places = places
        self._local = local
        self.fault: str | None = None

    def watched(self, make: Callable[..., Any]) -> Callable[..., Any]:
        """A `Parameter.__new__` that tells of what it makes, unless torch itself is at work."""

        @functools.wraps(make)
        def made(kind: Any, *arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            result = make(kind, *arguments, **keywords)
            if self._starved.has_stepped and not getattr(self._local, "depth", 0) and self._torch.is_grad_enabled():
                self._note(arguments[0] if arguments else keywords.get("data"), result)
            return result

        return made

    def _note(self, data: Any, parameter: Any) -> None:
        """Log one that cuts; never in its way."""
        try:
            with self._torch._C.DisableTorchFunction():  # noqa: SLF001
                if getattr(data, "requires_grad", False) and parameter.requires_grad:
                    self._starved.saw_new_leaf(data, parameter, self._places.here(3))
        except Exception as fault:  # noqa: BLE001 - the program must run whatever we cannot read of it
            self.fault = f"{PARAMETER}: {type(fault).__name__}: {fault}"[:200]
