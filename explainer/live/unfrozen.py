"""Parameters that come to train after the first steps of their optimizer, and never get a gradient.

`add_param_group` gave them to it, or they were in it and require grad now: gradual unfreezing, whose forward still runs without a graph.
One that gets a gradient speaks for all that came with it: of a block that is unfrozen as a whole the loss may read a part.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

LEAST = 3  # steps without a gradient
MAX_FROZEN = 64
MAX_KEPT = 16


@dataclass(slots=True)
class _Known:
    """What an optimizer had at the last look: so many groups, and these parameters that required no grad."""

    groups: int
    frozen: list[weakref.ref[Any]]


@dataclass(slots=True)
class _Late:
    """Parameters that came to train when their optimizer had made `at` steps; `steps` have been made since."""

    optimizer: str
    at: int
    parameters: list[weakref.ref[Any]]
    steps: int = 0

    def alive(self) -> list[Any]:
        return [one for ref in self.parameters if (one := ref()) is not None and one.requires_grad]


class Unfrozen:
    """Looks at the groups of each optimizer before its steps."""

    def __init__(self, key: Callable[[Any], str], steps: Callable[[str], int]) -> None:
        self._key = key
        self._steps = steps
        self._known: dict[str, _Known] = {}
        self._late: list[_Late] = []

    def before_step(self, optimizer: Any) -> None:
        """An optimizer is about to step."""
        with suppress(Exception):  # an optimizer of a kind of its own may have other groups
            key = self._key(optimizer)
            self._look(key, optimizer.param_groups)
            self._late = [one for one in self._late if one.optimizer != key or not _is_given(one)]
            for one in self._late:
                one.steps += one.optimizer == key

    def at_the_end(self) -> list[dict[str, Any]]:
        """Those that no step has trained."""
        return [
            {"optimizer": one.optimizer, "parameters": len(alive), "at": one.at, "steps": one.steps}
            for one in self._late
            if one.steps >= LEAST and (alive := one.alive())
        ]

    def _look(self, key: str, groups: list[dict[str, Any]]) -> None:
        known = self._known.get(key)
        if known is None:
            owned = [one for group in groups for one in group["params"] if not one.requires_grad]
            if len(self._known) < MAX_KEPT:
                self._known[key] = _Known(len(groups), [weakref.ref(one) for one in owned[:MAX_FROZEN]])
            return
        late = [weakref.ref(one) for group in groups[known.groups :] for one in group["params"] if one.requires_grad]
        known.groups = len(groups)
        if known.frozen:
            late += [ref for ref in known.frozen if (one := ref()) is not None and one.requires_grad]
            known.frozen = [ref for ref in known.frozen if (one := ref()) is not None and not one.requires_grad]
        if late and len(self._late) < MAX_KEPT:
            self._late.append(_Late(key, self._steps(key), late))


def _is_given(late: _Late) -> bool:
    """Whether one of them has a gradient, or none is there any more."""
    alive = late.alive()
    return not alive or any(one.grad is not None for one in alive)
