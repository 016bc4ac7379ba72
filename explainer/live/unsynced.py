"""Parameters that DistributedDataParallel does not average: they were frozen when it wrapped their module, and train since.

It registers what requires grad at that moment. Nothing is raised and nothing is warned of: each rank steps by its own gradient, and
the replicas drift apart. A program may average them itself; so their values are compared over the ranks, by who reads the reports.
"""

from __future__ import annotations

import sys
import weakref
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from .frame import behind
from .imports import after_import
from .trace.place import Places, describe

MAX_WRAPPED, MAX_FROZEN, MAX_SUMS = 8, 400, 8


@dataclass(slots=True)
class _Wrapped:
    """What was frozen in a module when it was wrapped, and what one of it that trains since has held before each of its steps."""

    module: str
    place: dict[str, Any]
    frozen: dict[str, weakref.ref[Any]]
    watched: str = ""
    seen: int = 0
    sums: list[float] = field(default_factory=list)

    def thawed(self) -> dict[str, Any]:
        """Those that have a gradient by now."""
        alive = {name: one for name, ref in self.frozen.items() if (one := ref()) is not None}
        return {name: one for name, one in alive.items() if one.requires_grad and one.grad is not None}


class Unsynced:
    """Looks at each wrapper as it is made, and at what its module's optimizers are about to step."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._places = Places(torch)
        self._wrapped: list[_Wrapped] = []

    def watch(self) -> None:
        """Look from now on."""
        after_import("torch.nn.parallel.distributed", self._watch)

    def _watch(self, module: Any) -> None:
        kind = module.DistributedDataParallel
        kind.__init__ = behind(kind.__init__, self._look)

    def _look(self, arguments: tuple[Any, ...], _: dict[str, Any], __: Any) -> None:
        with suppress(Exception):  # a wrapper of a kind of its own may hold anything
            wrapper, left = arguments[0], getattr(arguments[0], "parameters_to_ignore", ())
            named = {name: one for name, one in wrapper.module.named_parameters() if name not in left}
            registered = {id(one) for one in named.values() if one.requires_grad}
            for known in self._wrapped:  # what a later wrapper averages
                known.frozen = {name: ref for name, ref in known.frozen.items() if id(ref()) not in registered}
            ranks = sys.modules["torch.distributed"].get_world_size(wrapper.process_group)
            frozen = {name: weakref.ref(one) for name, one in named.items() if not one.requires_grad}
            if ranks > 1 and frozen and len(frozen) <= MAX_FROZEN and len(self._wrapped) < MAX_WRAPPED:
                place = describe(self._places.here(3))
                self._wrapped.append(_Wrapped(type(wrapper.module).__name__, place, frozen))

    def before_step(self, optimizer: Any) -> None:
        """What one of the thawed parameters of this optimizer holds, from its second step on: by then a step has moved it."""
        if not self._wrapped:
            return
        owned = {id(one) for group in optimizer.param_groups for one in group["params"]}
        for one in self._wrapped:
            thawed = one.thawed() if len(one.sums) < MAX_SUMS else {}
            name = one.watched or next((name for name, each in thawed.items() if id(each) in owned), "")
            if name not in thawed or id(thawed[name]) not in owned:
                continue
            if one.seen:
                one.sums.append(float(thawed[name].detach().double().sum()))
            one.watched, one.seen = name, one.seen + 1

    def at_the_end(self) -> list[dict[str, Any]]:
        """The wrapped modules of which something trains since, with the line that wrapped them."""
        return [
            {"module": one.module, "names": list(one.thawed()) or [one.watched], "sums": one.sums, **one.place}
            for one in self._wrapped
            if one.sums
        ]
