"""The text that detaches a kept value: every tensor of it, through the lists, tuples and dictionaries that hold them."""

from __future__ import annotations

import ast
from dataclasses import replace

from explainer.source.file import SourceFile
from explainer.source.loop.carried import LIST, TUPLE
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.nesting import TENSOR, Nesting, nesting_bound, nesting_filled

PUTS = frozenset({"append", "appendleft", "extend", "insert", "put", "add"})
"""The methods by which a container is filled."""
CUTS = frozenset({"detach", "data", "item"})
"""The attributes and methods that leave a graph behind."""
_NAMES = ("part", "parts", "group", "groups")


def detached_form(name: str, statement: ast.stmt, form: str, file: SourceFile, program: Program) -> str:
    """An expression for a name's value, detached, where a statement has bound the name.

    `form` is what is known of the value where its nesting is not.
    """
    return detached(nesting_kept(name, statement, form, file, program), name)


def nesting_kept(name: str, statement: ast.stmt, form: str, file: SourceFile, program: Program) -> Nesting:
    """How a name's value is nested where a statement has bound the name, or an entry of it."""
    nesting = nesting_bound(statement, name, file, program)
    if nesting.kind == "unknown":  # `state["h"] = ...` binds an entry
        read = next((one for one in walk(statement) if _is_read(one, name)), None)
        nesting = nesting_filled(read, file, program) if isinstance(read, ast.expr) else nesting
    if not nesting.is_container and form in (TUPLE, LIST):
        nesting = Nesting(form, each=TENSOR)
    return nesting


def _is_read(node: ast.AST, name: str) -> bool:
    is_name = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
    return is_name and dotted_name(node) == name


def detached(nesting: Nesting, expression: str) -> str:
    """An expression for the same value with every tensor detached; what is not known is taken for a tensor."""
    if nesting.kind == "plain":
        return expression
    if nesting.kind == "either":
        inner = "one" if expression == "part" else "part"
        pair = f"tuple({inner}.detach() for {inner} in {expression})"
        return f"{pair} if isinstance({expression}, tuple) else {expression}.detach()"
    if not nesting.is_container:
        return f"{expression}.detach()"
    parts = {
        one if one.is_container or one.may_be_none or one.kind in ("plain", "either") else TENSOR
        for one in nesting.parts
    }
    if len({replace(one, may_be_none=False) for one in parts}) == 1:
        parts = {replace(parts.pop(), may_be_none=any(one.may_be_none for one in nesting.parts))}
    if nesting.kind == "record" or len(parts) > 1:
        written = _part_by_part(nesting, expression)
        if written is not None:
            return written
    element = parts.pop() if len(parts) == 1 else nesting.element
    name = _NAMES[min(_height(element), len(_NAMES)) - 1]
    if nesting.kind == "dict":
        return f"{{key: {_optional(element, name)} for key, {name} in {expression}.items()}}"
    inner = f"{_optional(element, name)} for {name} in {expression}"
    written = {"list": f"[{inner}]", "tuple": f"tuple({inner})"}.get(nesting.kind)
    return written or f"type({expression})(*({inner}))"


def _part_by_part(nesting: Nesting, expression: str) -> str | None:
    """Each part by its name or place: `{**state, "h": state["h"].detach()}`, `state._replace(h=state.h.detach())`."""
    if nesting.kind == "dict":
        entries = [(one, part, f"{expression}[{_quoted(one)}]") for one, part in _held(nesting)]
        changed = ", ".join(f"{_quoted(one)}: {_optional(part, text)}" for one, part, text in entries)
        return f"{{**{expression}, {changed}}}" if entries else None
    if nesting.names:
        held = ", ".join(f"{one}={_optional(part, f'{expression}.{one}')}" for one, part in _held(nesting))
        if nesting.kind == "named":
            return f"{expression}._replace({held})"
        rest = [f"{one}={expression}.{one}" for one, part in _named(nesting) if part.kind == "plain"]
        return f"type({expression})({', '.join([held, *rest])})"
    each = ", ".join(_optional(one, f"{expression}[{at}]") for at, one in enumerate(nesting.parts))
    written = {"list": f"[{each}]", "tuple": f"({each})"}.get(nesting.kind)
    return written or (f"type({expression})({each})" if nesting.kind == "named" else None)


def _named(nesting: Nesting) -> list[tuple[str, Nesting]]:
    return list(zip(nesting.names, nesting.parts, strict=True))


def _held(nesting: Nesting) -> list[tuple[str, Nesting]]:
    """The named parts that hold tensors."""
    return [(one, part) for one, part in _named(nesting) if part.kind != "plain"]


def _quoted(key: str) -> str:
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _optional(nesting: Nesting, expression: str) -> str:
    """A part that may be missing stays missing."""
    text = detached(nesting, expression)
    return f"None if {expression} is None else {text}" if nesting.may_be_none else text


def _height(nesting: Nesting) -> int:
    return 1 + max(map(_height, {nesting.element, *nesting.parts})) if nesting.is_container else 1
