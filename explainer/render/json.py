"""A report as JSON: the contract that other programs rely on (`gradfix rules schema` prints its schema)."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from typing import Any

from explainer.model.finding import Fix
from explainer.model.incident import Incident

_LEFT_OUT: dict[type, frozenset[str]] = {Incident: frozenset({"log"}), Fix: frozenset({"changes"})}


def to_plain(value: Any) -> Any:
    """Dataclasses as dictionaries, tuples as lists; numbers that are not finite as "nan", "inf" and "-inf"."""
    if is_dataclass(value) and not isinstance(value, type):
        left_out = _LEFT_OUT.get(type(value), frozenset())
        return {one.name: to_plain(getattr(value, one.name)) for one in fields(value) if one.name not in left_out}
    if isinstance(value, (tuple, list)):
        return [to_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: to_plain(one) for key, one in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def render_json(value: Any) -> str:
    """`value` as one line of JSON, with a final line feed."""
    return json.dumps(to_plain(value), ensure_ascii=True) + "\n"
