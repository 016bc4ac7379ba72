"""The text that detaches a kept value: every tensor of it, through the lists, tuples and dictionaries that hold them."""

from __future__ import annotations

import ast

from explainer.source.carried import LIST, TUPLE
from explainer.source.file import SourceFile
from explainer.source.nesting import TENSOR, Nesting, nesting_bound
from explainer.source.program import Program

PUTS = frozenset({"append", "appendleft", "extend", "insert", "put", "add"})
"""The methods by which a container is filled."""
CUTS = frozenset({"detach", "data", "item"})
"""The attributes and methods that leave a graph behind."""
_NAMES = ("part", "parts", "group", "groups")


def detached_form(name: str, statement: ast.stmt, form: str, file: SourceFile, program: Program) -> str:
    """An expression for a name's value, detached, where a statement has bound the name.

    `form` is what is known of the value where its nesting is not.
    """
    nesting = nesting_bound(statement, name, file, program)
    if not nesting.is_container and form in (TUPLE, LIST):
        nesting = Nesting(form, each=TENSOR)
    return detached(nesting, name)


def detached(nesting: Nesting, expression: str) -> str:
    """An expression for the same value with every tensor detached; what is not known is taken for a tensor."""
    if not nesting.is_container:
        return f"{expression}.detach()"
    parts = {one if one.is_container or one.may_be_none else TENSOR for one in nesting.parts}
    if len(parts) > 1:
        each = ", ".join(_optional(one, f"{expression}[{at}]") for at, one in enumerate(nesting.parts))
        written = {"list": f"[{each}]", "tuple": f"({each})"}.get(nesting.kind)
        return written or f"type({expression})({each})"
    element = parts.pop() if parts else nesting.element
    name = _NAMES[min(_height(element), len(_NAMES)) - 1]
    if nesting.kind == "dict":
        return f"{{key: {_optional(element, name)} for key, {name} in {expression}.items()}}"
    inner = f"{_optional(element, name)} for {name} in {expression}"
    written = {"list": f"[{inner}]", "tuple": f"tuple({inner})"}.get(nesting.kind)
    return written or f"type({expression})(*({inner}))"


def _optional(nesting: Nesting, expression: str) -> str:
    """A part that may be missing stays missing."""
    text = detached(nesting, expression)
    return f"None if {expression} is None else {text}" if nesting.may_be_none else text


def _height(nesting: Nesting) -> int:
    return 1 + max(map(_height, {nesting.element, *nesting.parts})) if nesting.is_container else 1
