"""The calls of the base class's own method within the method that overrides it: `super().training_step(model, inputs)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.name import Function
from explainer.source.tree import walk


def calls_of_base(node: Function) -> Iterator[ast.Call]:
    """The calls `super().<the method itself>(...)` of an overriding method."""
    for statement in node.body:
        for one in walk(statement):
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == node.name:
                above = one.func.value
                if isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id == "super":
                    yield one
