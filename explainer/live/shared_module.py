"""Two modules of which one is frozen on purpose, a teacher or an average, and the other is made of the same parameters.

Identities only: the same objects, under two names of the program's own frames.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import FrameType
from typing import Any

from .made_steps import living

MAX_HELD = 400
MAX_MODULES = 200
MAX_PAIRS = 4
# The words of `source.network.shared_module`, which is not there in the user's process.
_APART = re.compile(
    r"teacher|target|(?<![a-z])ema(?![a-z])|moving_?average|momentum|refer|(?<![a-z])ref(?![a-z])|shadow|anchor|snapshot|(?<![a-z])(?:old|prev|previous)(?![a-z])|polyak",
    re.IGNORECASE,
)
_LEARNS = re.compile(r"student|pupil|learner|online", re.IGNORECASE)


def shared_modules(error: BaseException, frames: list[FrameType], torch: Any) -> list[str]:
    """`student and teacher` for each such pair: what is to learn, all of it frozen, and what it shares its parameters with."""
    held = list({(name, id(one)): (name, one) for name, one in _held(frames, torch)}.values())[:MAX_MODULES]
    own = {id(one): frozenset(id(each) for each in one.parameters()) for _, one in held}
    inside = {id(one): frozenset(id(each) for each in one.modules()) for _, one in held}
    groups = _frozen_groups(torch)
    is_refused = "empty parameter list" in str(error)
    found: dict[str, None] = {}
    for name, one in held:
        is_trained = is_refused or any(group <= own[id(one)] for group in groups)
        if not own[id(one)] or not is_trained or any(each.requires_grad for each in one.parameters()):
            continue
        for other, another in held:
            is_part = one is not another and (id(one) in inside[id(another)] or id(another) in inside[id(one)])
            is_apart = _are_apart(name, other, is_same=one is another)
            if is_apart and not is_part and own[id(one)] <= own[id(another)]:
                found[f"{name} and {other}"] = None
    return list(found)[:MAX_PAIRS]


def _are_apart(name: str, other: str, *, is_same: bool) -> bool:
    """Whether two names speak of a module that learns and of one that does not; a student alone may go by a second name."""
    if name == other or _APART.search(name) is not None:
        return False
    is_student = _LEARNS.search(name) is not None and _LEARNS.search(other) is None and not is_same
    return is_student or _APART.search(other) is not None


def _held(frames: list[FrameType], torch: Any) -> Iterator[tuple[str, Any]]:
    """The modules of the frames by name: variables, what objects among these hold, and the parts of a module."""
    for frame in frames:
        for space in (frame.f_locals, frame.f_globals):
            for name, value in list(space.items())[:MAX_HELD]:
                is_module = issubclass(type(value), torch.nn.Module)
                if is_module and name != "self":
                    yield name, value
                kept = getattr(value, "__dict__", None) if not isinstance(value, type) else None
                kept = {**kept, **kept.get("_modules", {})} if type(kept) is dict and is_module else kept
                for key, one in list(kept.items())[:MAX_HELD] if type(kept) is dict else ():
                    if issubclass(type(one), torch.nn.Module):
                        yield key, one


def _frozen_groups(torch: Any) -> list[frozenset[int]]:
    """The parameters of each optimizer of which none requires grad."""
    owned = [[one for group in each.param_groups for one in group["params"]] for each in living(torch)]
    return [frozenset(id(one) for one in each) for each in owned if each and not any(one.requires_grad for one in each)]
