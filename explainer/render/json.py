"""A report as JSON: the contract that other programs rely on (`gradfix rules schema` prints its schema)."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from typing import Any

from explainer.model.finding import Fix
from explainer.model.incident import Incident
from explainer.model.verification import Gradient

LeftOut = dict[type, frozenset[str]]
_ALWAYS: LeftOut = {Incident: frozenset({"log"}), Fix: frozenset({"changes"})}
# A model's gradients are megabytes; only a file that is written to be compared with holds them.
_BULK: LeftOut = {Gradient: frozenset({"values", "projections"})}


def to_plain(value: Any, left_out: LeftOut | None = None) -> Any:
    """Dataclasses as dictionaries, tuples as lists; numbers that are not finite as "nan", "inf" and "-inf"."""
    left_out = {**_ALWAYS, **_BULK} if left_out is None else left_out
    if is_dataclass(value) and not isinstance(value, type):
        missing = left_out.get(type(value), frozenset())
        return {
            one.name: to_plain(getattr(value, one.name), left_out) for one in fields(value) if one.name not in missing
        }
    if isinstance(value, (tuple, list)):
        return [to_plain(one, left_out) for one in value]
    if isinstance(value, dict):
        return {key: to_plain(one, left_out) for key, one in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def render_json(value: Any, *, is_whole: bool = False) -> str:
    """`value` as one line of JSON, with a final line feed; `is_whole` with the numbers of gradients."""
    return json.dumps(to_plain(value, _ALWAYS if is_whole else None), ensure_ascii=True) + "\n"
