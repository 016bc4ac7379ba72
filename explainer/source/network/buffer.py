"""Buffers of a module: what `self.register_buffer("name", value)` makes of an attribute."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value


def registered(value: Value, program: Program) -> Iterator[Value]:
    """What the class around an attribute of `self` registers under its name."""
    name = dotted_name(value.node) or ""
    owner = program.names(value.file).class_of(value.node) if name.startswith("self.") else None
    for node in walk(owner) if owner is not None else ():
        if isinstance(node, ast.Call) and dotted_name(node.func) == "self.register_buffer" and len(node.args) > 1:
            key, given = node.args[:2]
            if isinstance(key, ast.Constant) and key.value == name.removeprefix("self."):
                yield Value(given, value.file)
