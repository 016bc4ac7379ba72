"""A module that is frozen under one name, and is the one that trains under another."""

from __future__ import annotations

import ast
import re

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.freeze import Freeze
from explainer.source.network.module import is_module, trained_constructors
from explainer.source.program import Program
from explainer.source.value.binding import Value, bounds_of, scope_of
from explainer.source.value.resolve import resolver_of

MEANT_APART = re.compile(
    r"teacher|target|(?<![a-z])ema(?![a-z])|moving_?average|momentum|refer|(?<![a-z])ref(?![a-z])|shadow|anchor|snapshot|(?<![a-z])(?:old|prev|previous)(?![a-z])|polyak",
    re.IGNORECASE,
)


def alias_of(freeze: Freeze, program: Program) -> tuple[SourceFile, ast.expr] | None:
    """Where a frozen name that is meant to be another module is bound to one that an optimizer gets; None where it is its own."""
    name = dotted_name(freeze.owner)
    if freeze.is_on or name is None or name == "self":
        return None
    owner = program.names(freeze.file).class_of(freeze.statement)
    if MEANT_APART.search(f"{name} {owner.name if owner is not None and name.startswith('self.') else ''}") is None:
        return None
    made = {one.node for one in resolver_of(program).constructors_of(Value(freeze.owner, freeze.file))}
    if not made & trained_constructors(program):
        return None
    bound = [one for one in bounds_of(scope_of(freeze.statement, freeze.file)) if one.name == name and not one.fills]
    values = [one.node for one in bound if dotted_name(one.node) is not None]
    is_plain = len(bound) == 1 and len(values) == 1 and is_module(Value(values[0], freeze.file), program)
    return (freeze.file, values[0]) if is_plain else None
