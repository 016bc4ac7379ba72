"""State dicts that `load_state_dict` refuses, and a program that takes the error for another one and trains without them.

What is meant is not told: a load that is made good, a module that trains nowhere, a state that another module takes, and a handler
that knows of states which do not fit. A prefix before all of the keys is a fault under any handler.
"""

from __future__ import annotations

import functools
import re
import sys
import traceback
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import FrameType
from typing import Any

from .frame import is_ours, leave_no_frame
from .handler import Handler, handler_of
from .state_key import by_prefix
from .trace.place import Places, describe
from .unloaded import MAX_KEYS, MAX_NOTES, SAMPLES, is_close, named_tensors, size_of, values_of

REFUSES = "Error(s) in loading state_dict for"
MAX_MESSAGE, MAX_TAKEN, FEW = 100_000, 20, 2
TWICE = 2  # as many tensors left as loaded, at least
# Of a file that is not there or cannot be read: a handler that names one of them too means that.
_OF_FILES = frozenset({
    "OSError", "IOError", "EnvironmentError", "FileNotFoundError", "PermissionError", "EOFError", "UnpicklingError", "BadZipFile",
})  # fmt: skip
_KNOWS = re.compile(
    r"mismatch|compatib|architect|\bshape|\bsize|differ|\b(?:not|n't) fit|\bkeys?\b|strict|stale|outdated|\bold\b|another",
    re.IGNORECASE,
)

Mark = tuple[Any, ...]
"""By which a state is known again, read from its file once more or not."""


class Refused:
    """Notes the loads that are refused; forgets one that is made good, or of a module that does not train."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._places = Places(torch)
        self._notes: list[_Note] = []
        self._taken: list[Mark] = []

    def watch(self) -> None:
        """Look at the errors of `load_state_dict`."""
        module = self._torch.nn.Module
        load = module.load_state_dict

        @functools.wraps(load)
        def loading(this: Any, state_dict: Any, *arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            try:
                result = load(this, state_dict, *arguments, **keywords)
            except Exception as error:
                leave_no_frame(error)
                if isinstance(error, RuntimeError) and str(error).startswith(REFUSES):
                    with suppress(Exception):  # a module or a state of a kind of its own may be anything
                        self._refuse(this, state_dict, error)
                raise
            with suppress(Exception):
                self._take(this, state_dict, result)
            return result

        module.load_state_dict = loading

    def before_step(self, optimizer: Any) -> None:
        """Look whether this optimizer trains what was left as it was, at its first step after the load."""
        for one in self._notes:
            with suppress(Exception):
                one.meet(optimizer)
        if self._notes:
            self._notes = [one for one in self._notes if not one.is_over]

    def at_the_end(self) -> list[dict[str, Any]]:
        """The loads that were refused, of modules that were trained all the same."""
        return [one.told for one in self._notes if one.is_sure]

    def _refuse(self, module: Any, state: Mapping[str, Any], error: RuntimeError) -> None:
        if len(self._notes) >= MAX_NOTES or len(state) > MAX_KEYS:
            return
        caller = sys._getframe(2)  # noqa: SLF001 - the only way to the line that loads
        handler = handler_of(caller, type(error).__name__, self._places.is_own)
        left, prefix = _left(module, state)
        mark = _mark(state)
        is_meant = handler is None or not (prefix or (_is_for_another(handler) and mark not in self._taken))
        if is_meant or not left:
            return
        told = {
            "module": type(module).__name__,
            "message": str(error)[:MAX_MESSAGE],
            "prefix": prefix,
            "text": _text(error, caller),
            **describe(self._places.here(3)),
        }
        self._notes.append(_Note(told, left, mark, is_certain=bool(prefix)))

    def _take(self, module: Any, state: Mapping[str, Any], result: Any) -> None:
        """A state that a module has taken: what that one, or a part of it, was refused before is made good."""
        self._notes = [one for one in self._notes if one.is_sure or not one.is_of(module)]
        is_open = any(not one.is_sure for one in self._notes)
        if not result.unexpected_keys and (is_open or len(self._taken) < MAX_TAKEN):
            mark = _mark(state)
            self._taken = [*self._taken, mark][:MAX_TAKEN]
            self._notes = [one for one in self._notes if one.is_sure or one.is_certain or one.mark != mark]


class _Note:
    """A load that was refused, with the parameters that it left as they were."""

    def __init__(self, told: dict[str, Any], left: list[Any], mark: Mark, *, is_certain: bool) -> None:
        self.told, self.mark = told, mark
        self.is_sure = self.is_over = False
        self.is_certain = is_certain
        kept = [one for one in left if one.requires_grad][:SAMPLES] or left[:SAMPLES]
        self._left = [(weakref.ref(one), values_of(one)) for one in kept]
        self._met: set[int] = set()

    def _alive(self) -> list[tuple[Any, list[float] | None]]:
        return [(one, values) for ref, values in self._left if (one := ref()) is not None]

    def meet(self, optimizer: Any) -> None:
        """Whether an optimizer trains the parameters, and they hold what they held; or they are frozen, and what else trains reads them."""
        if self.is_sure or id(optimizer) in self._met:
            return
        self._met.add(id(optimizer))
        alive = self._alive()
        owned = {id(one) for group in optimizer.param_groups for one in group["params"]}
        is_frozen = self.is_certain and not any(one.requires_grad for one, _ in alive)
        if alive and (is_frozen or any(id(one) in owned for one, _ in alive)):
            self.is_sure = all(is_close(values_of(one), values) for one, values in alive)
            self.is_over = not self.is_sure
        self.is_over = self.is_over or not alive

    def is_of(self, module: Any) -> bool:
        """Whether a module holds one of the parameters."""
        left = {id(one) for one, _ in self._alive()}
        return any(id(one) in left for _, one in named_tensors(module))


def _left(module: Any, state: Mapping[str, Any]) -> tuple[list[Any], str]:
    """What the load left as it was, if that is most of the module, and the prefix that would have made it fit, if one does.

    What fits is loaded before the error is raised: a new head on a body that was loaded is no fault.
    """
    own = dict(_loadable(module))
    given = {key: size_of(value) for key, value in state.items()}
    sizes = {key: size_of(value) for key, value in own.items()}
    unexpected, missing = [key for key in given if key not in own], [key for key in own if key not in given]
    if found := by_prefix(given, sizes, unexpected, missing):
        fits, told = found
        is_there = all(is_close(values_of(own[name]), values_of(state[key])) for key, name in fits[:SAMPLES])
        return ([] if is_there else [own[name] for _, name in fits]), str(told["prefix"])
    left = [own[key] for key, size in sizes.items() if given.get(key) != size]
    return (left if (len(own) - len(left)) * TWICE <= len(left) else []), ""


def _loadable(module: Any) -> Iterator[tuple[str, Any]]:
    """The parameters and buffers of a module that its state dict holds."""
    for path, one in module.named_modules(remove_duplicate=False):
        passing = one._non_persistent_buffers_set  # noqa: SLF001 - torch has no other name for it
        held = (*one.named_parameters(recurse=False), *one.named_buffers(recurse=False))
        yield from ((f"{path}.{name}" if path else name, value) for name, value in held if name not in passing)


def _is_for_another(handler: Handler) -> bool:
    """Whether a handler was meant for another failure: it takes whatever comes, or that of a file, and says nothing of what does not fit."""
    return bool(handler.is_for_all or handler.names & _OF_FILES) and not _KNOWS.search(handler.words)


def _mark(state: Mapping[str, Any]) -> Mark:
    tensors = [(key, one) for key, one in state.items() if size_of(one)][:FEW]
    return len(state), *((key, size_of(one), tuple(values_of(one) or ())) for key, one in tensors)


def _text(error: BaseException, caller: FrameType) -> str:
    """The traceback as it would have been printed, down to the line that loads."""
    lines = [one for one in traceback.extract_stack(caller) if not is_ours(one.filename)]
    told = f"{type(error).__name__}: {str(error)[:MAX_MESSAGE]}\n"
    return "Traceback (most recent call last):\n" + "".join(traceback.format_list(lines)) + told
