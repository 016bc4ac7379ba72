"""Puts parameters together by the modules that hold them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from explainer.model.verification import ModuleHealth, ParameterHealth


def modules_of(parameters: Iterable[ParameterHealth]) -> tuple[ModuleHealth, ...]:
    """The health of each module, in the order of the parameters.

    A layer of a numbered list is one module with all that is in it; any other parameter belongs to what holds it.
    """
    found: dict[str, list[ParameterHealth]] = defaultdict(list)
    for one in parameters:
        if one.trains:
            found[_module_of(one.name)].append(one)
    return tuple(_health(name, owned) for name, owned in found.items())


def _module_of(name: str) -> str:
    """`Net.layers.3.mlp.up.weight` is in `Net.layers.3`, `Net.head.weight` in `Net.head`; `0 SGD[2]` in `0 SGD`."""
    parts = name.split(".")
    numbered = next((index for index, part in enumerate(parts) if part.isdigit()), None)
    if numbered is not None:
        return ".".join(parts[: numbered + 1])
    return ".".join(parts[:-1]) or name.partition("[")[0]


def _health(name: str, owned: Sequence[ParameterHealth]) -> ModuleHealth:
    norms = [one.norm for one in owned if one.norm is not None]
    is_known = bool(norms) and not any(one.bad and one.norm is None for one in owned)
    return ModuleHealth(
        name=name,
        parameters=len(owned),
        given=sum(1 for one in owned if one.given),
        zero=sum(1 for one in owned if one.given and not one.moved),
        bad=sum(1 for one in owned if one.bad),
        norm=math.hypot(*norms) if is_known else None,
    )
