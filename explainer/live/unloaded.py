"""State dicts of which `strict=False` loads nothing, or nearly so, since a prefix stands before all of their keys, or before the module's.

Or since the keys have no dots: `encoder0weight`. What is in order is not told: a load that is made good before the first step, a
state that another module takes, weights that are there already.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from .frame import leave_no_frame
from .state_key import passed_over
from .trace.place import Places, describe

MAX_KEYS, MAX_NOTES, MAX_TAKEN = 20_000, 50, 50_000
SAMPLES, VALUES = 8, 16


class Unloaded:
    """Notes the loads that pass over what they were given; forgets one that is made good afterwards."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._places = Places(torch)
        self._notes: list[_Note] = []
        self._taken: dict[int, weakref.ref[Any]] = {}

    def watch(self) -> None:
        """Look at what `load_state_dict` says of the keys that it has passed over."""
        module = self._torch.nn.Module
        load = module.load_state_dict

        @functools.wraps(load)
        def loading(this: Any, state_dict: Any, *arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            try:
                result = load(this, state_dict, *arguments, **keywords)
            except Exception as error:
                leave_no_frame(error)
                raise
            is_strict = keywords.get("strict", arguments[0] if arguments else True)
            with suppress(Exception):  # a module or a state of a kind of its own may be anything
                if self._notes or not is_strict:
                    self._look(this, state_dict, result)
                self._take(state_dict, result)
            return result

        module.load_state_dict = loading

    def before_step(self) -> None:
        """Forget what the program has written by itself since, before the first step that follows."""
        with suppress(Exception):
            self._notes = [one for one in self._notes if one.stands()]

    def at_the_end(self) -> list[dict[str, Any]]:
        """The loads that were never made good."""
        return [one.told for one in self._notes]

    def _look(self, module: Any, state: Any, result: Any) -> None:
        missing, unexpected = list(result.missing_keys), list(result.unexpected_keys)
        self._notes = [one for one in self._notes if not one.is_mended_by(module, state, missing, unexpected)]
        if not missing or not unexpected or max(len(missing), len(state)) > MAX_KEYS or len(self._notes) >= MAX_NOTES:
            return
        tensors = dict(named_tensors(module))
        found = passed_over(
            {key: size_of(value) for key, value in state.items()},
            {key: size_of(value) for key, value in tensors.items()},
            unexpected,
            missing,
        )
        if found is None:
            return
        fits, told = found
        left, passed = [tensors[own] for _, own in fits], [state[key] for key, _ in fits]
        is_spelled = "separator" in told  # as the keys of another module are, which also takes them
        if is_spelled and (any(map(self._is_taken, passed)) or all(map(_is_same, left, passed))):
            return
        place = describe(self._places.here(3))
        self._notes.append(_Note({"module": type(module).__name__, **told, **place}, left, passed))

    def _take(self, state: Any, result: Any) -> None:
        """Remember the tensors for which a module had a place."""
        passed = set(result.unexpected_keys)
        if len(self._taken) + len(state) > MAX_TAKEN:
            self._taken = {key: ref for key, ref in self._taken.items() if ref() is not None}
        if len(self._taken) + len(state) <= MAX_TAKEN:
            tensors = (one for key, one in state.items() if key not in passed and size_of(one) is not None)
            self._taken.update((id(one), weakref.ref(one)) for one in tensors)

    def _is_taken(self, tensor: Any) -> bool:
        ref = self._taken.get(id(tensor))
        return ref is not None and ref() is tensor


class _Note:
    """A load that has passed over what fits, with the parameters that it left as they were."""

    def __init__(self, told: dict[str, Any], left: list[Any], given: list[Any]) -> None:
        self.told = told
        kept = [one for one in left if one.requires_grad][:SAMPLES] or left[:SAMPLES]
        self._left = [(weakref.ref(one), values_of(one)) for one in kept]
        self._given = [weakref.ref(one) for one in given[:SAMPLES]]
        self._is_sure = False

    def stands(self) -> bool:
        """Whether the parameters are there and hold what they held, when the program begins to train."""
        if not self._is_sure:
            alive = [(one, values) for ref, values in self._left if (one := ref()) is not None]
            self._is_sure = bool(alive) and all(is_close(values_of(one), values) for one, values in alive)
        return self._is_sure

    def is_mended_by(self, module: Any, state: Any, missing: list[str], unexpected: list[str]) -> bool:
        """Whether a later load, before the first step, fills what this one left, or finds a place for what this one was given."""
        if self._is_sure:
            return False  # what comes later is a resumed run, or the best weights of one that began at random
        left = {id(one) for ref, _ in self._left if (one := ref()) is not None}
        given = {id(one) for ref in self._given if (one := ref()) is not None}
        is_filled = any(id(one) in left and name not in missing for name, one in named_tensors(module))
        return is_filled or any(id(one) in given and key not in unexpected for key, one in state.items())


def _is_same(one: Any, other: Any) -> bool:
    return is_close(values_of(one), values_of(other))


def named_tensors(module: Any) -> Iterator[tuple[str, Any]]:
    """The parameters and buffers of a module under all of their names."""
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def size_of(value: Any) -> tuple[int, ...] | None:
    """The shape of a tensor; None of what has none."""
    shape = getattr(value, "shape", None)
    return None if shape is None else tuple(shape)


def values_of(tensor: Any) -> list[float] | None:
    """The first values of a tensor; None of one that has none to read."""
    if tensor.is_meta or type(tensor).__name__ == "DTensor":  # to read a sharded one takes all ranks
        return None
    flat = tensor.detach().reshape(-1)[:VALUES]
    return [float(one) for one in flat.tolist()]


def is_close(now: list[float] | None, before: list[float] | None) -> bool:
    """Whether values are the same, but for a cast to a type of fewer digits."""
    if now is None or before is None:
        return now == before
    return all(abs(one - other) <= 1e-2 * abs(other) for one, other in zip(now, before, strict=False))
