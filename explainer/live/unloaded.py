"""State dicts of which `strict=False` loads nothing, or nearly so, since a prefix stands before all of their keys, or before the module's.

What a program leaves out on purpose, a head or another part, is told by names and sizes: one prefix turns nearly all of the
keys that were passed over into keys that the module misses, of the same sizes.
"""

from __future__ import annotations

import functools
import weakref
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from .frame import leave_no_frame
from .trace.place import Places, describe

NEARLY_ALL = 0.8  # of the keys that were passed over
HALF = 0.5  # of the keys that the module misses, where nothing at all was loaded
LITTLE = 4  # keys that would fit, at least, for each one that was loaded
MAX_KEYS, MAX_NOTES, MAX_OTHERS = 20_000, 50, 3
SAMPLES, VALUES = 8, 16

Fits = dict[tuple[str, bool], list[str]]
"""The keys of a file that fit without a prefix, or (True) with it in front."""


class Unloaded:
    """Notes the loads that pass over what they were given; forgets one that is made good afterwards."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._places = Places(torch)
        self._notes: list[_Note] = []

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
            if self._notes or not is_strict:
                with suppress(Exception):  # a module or a state of a kind of its own may be anything
                    self._look(this, state_dict, result)
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
        if found is not None:
            fits, told = found
            place = describe(self._places.here(3))
            told = {"module": type(module).__name__, **told, **place}
            self._notes.append(_Note(told, [tensors[own] for _, own in fits], [state[key] for key, _ in fits]))


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


def passed_over(
    given: Mapping[str, Any], own: Mapping[str, Any], unexpected: list[str], missing: list[str]
) -> tuple[list[tuple[str, str]], dict[str, Any]] | None:
    """The keys that fit but for a prefix, each with the module's own, and what is told of it; None where that is not sure.

    `given` and `own` are the sizes by key: of the state, of the module.
    """
    passed = set(unexpected)
    fits = _fits({key: given.get(key) for key in unexpected}, {key: own.get(key) for key in missing})
    if not fits:
        return None
    (prefix, is_added), keys = max(fits.items(), key=lambda one: len(one[1]))
    loaded = len(given.keys() - passed)
    is_nearly_all = len(keys) >= NEARLY_ALL * len(passed) and loaded * LITTLE <= len(keys)
    is_most = not loaded and len(keys) > 1 and len(keys) >= HALF * len(missing)
    if not (is_nearly_all or is_most):
        return None
    others = [one for one, found in fits.items() if 2 * len(found) >= len(keys) and one != (prefix, is_added)]
    renamed = {key: f"{prefix}{key}" if is_added else key.removeprefix(prefix) for key in given}
    # Once all are renamed: a key that was loaded is so no more, another meets a tensor of another size.
    fitting = set(keys)
    changed = {key: name for key, name in renamed.items() if name != key and key not in fitting}
    clashes = [key for key, name in changed.items() if key not in passed or name in own or name in given]
    told = {
        "keys": len(given), "fit": len(keys), "prefix": prefix, "is_added": is_added,
        "others": [one for one, _ in others[:MAX_OTHERS]], "clashes": len(clashes),
    }  # fmt: skip
    return [(key, renamed[key]) for key in keys], told


def _fits(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> Fits:
    found: Fits = defaultdict(list)
    for key, size in given.items():
        for prefix, rest in _split(key):
            if size is not None and wanted.get(rest) == size:
                found[prefix, False].append(key)
    for key, size in wanted.items():
        for prefix, rest in _split(key):
            if size is not None and given.get(rest) == size:
                found[prefix, True].append(rest)
    return found


def _split(key: str) -> Iterator[tuple[str, str]]:
    """`a.b.c` as `a.` and `b.c`, as `a.b.` and `c`."""
    at = key.find(".")
    while at >= 0:
        yield key[: at + 1], key[at + 1 :]
        at = key.find(".", at + 1)


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
