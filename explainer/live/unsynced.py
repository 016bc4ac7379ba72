"""Parameters that DistributedDataParallel does not average, though they train.

It registers what requires grad when it wraps: what was frozen then is thawed for each rank alone. And it averages the backward of
its own forward: of a module that is called past its wrapper, nothing. Nothing is raised and nothing is warned of: each rank steps by
its own gradient, and the replicas drift apart. A program may average by itself; so the values are compared over the ranks, by who
reads the reports.
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

MAX_WRAPPED, MAX_PARAMETERS, MAX_SUMS = 16, 400, 8
THAWED, BYPASSED = "thawed", "bypassed"


@dataclass(slots=True)
class _Wrapped:
    """Parameters of a module that its wrapper may not average, and what one of them has held before each of its steps."""

    kind: str
    wrapper: weakref.ref[Any]
    place: dict[str, Any]
    parameters: dict[str, weakref.ref[Any]]
    module: str
    is_called: bool = False
    watched: str = ""
    seen: int = 0
    sums: list[float] = field(default_factory=list)

    def is_averaged(self) -> bool:
        """Whether the wrapper's own forward has run for a backward: by now, or when it was last there.

        torch's log of it counts these forwards, in Python nothing is put in their way: a compiler reads what they call.
        """
        wrapper = self.wrapper() if self.kind == BYPASSED and not self.is_called else None
        if wrapper is not None:
            with suppress(Exception):  # a release that logs otherwise
                counted = wrapper._get_ddp_logging_data().get("iteration", 1)  # noqa: SLF001
                self.is_called = bool(counted) or getattr(wrapper, "_use_python_reducer", False)
                return self.is_called
            self.is_called = True
        return self.is_called

    def trained(self) -> dict[str, Any]:
        """Those that have a gradient by now."""
        alive = {name: one for name, ref in self.parameters.items() if (one := ref()) is not None}
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
                known.parameters = {name: ref for name, ref in known.parameters.items() if id(ref()) not in registered}
            ranks = sys.modules["torch.distributed"].get_world_size(wrapper.process_group)
            if ranks > 1 and len(named) <= MAX_PARAMETERS and len(self._wrapped) < MAX_WRAPPED:
                place, module = describe(self._places.here(3)), type(wrapper.module).__name__
                for what, is_on in ((THAWED, False), (BYPASSED, True)):
                    held = {name: weakref.ref(one) for name, one in named.items() if one.requires_grad is is_on}
                    self._wrapped.append(_Wrapped(what, weakref.ref(wrapper), place, held, module))

    def before_step(self, optimizer: Any) -> None:
        """What one of the thawed parameters of this optimizer holds, from its second step on: by then a step has moved it."""
        if not self._wrapped:
            return
        owned = {id(one) for group in optimizer.param_groups for one in group["params"]}
        for one in self._wrapped:
            trained = one.trained() if len(one.sums) < MAX_SUMS and not one.is_averaged() else {}
            name = one.watched or next((name for name, each in trained.items() if id(each) in owned), "")
            if name not in trained or id(trained[name]) not in owned:
                continue
            if one.seen:
                one.sums.append(float(trained[name].detach().double().sum()))
            one.watched, one.seen = name, one.seen + 1

    def at_the_end(self) -> list[dict[str, Any]]:
        """The wrapped modules of which something trains so, with the line that wrapped them."""
        return [
            {
                "kind": one.kind,
                "module": one.module,
                "names": list(one.trained()) or [one.watched],
                "sums": one.sums,
                **one.place,
            }
            for one in self._wrapped
            if one.sums and not one.is_averaged()
        ]
