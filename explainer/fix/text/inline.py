"""An expression of a function as a call of it writes it: `self.head(z)` of `forward(self, x)` as `model.head(z)` for `model(batch)`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping

from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bounds_of
from explainer.source.value.flow import arguments_of

_RUNS = ("forward", "__call__")


def written_at(
    value: Value, function: Function, call: ast.Call, where: SourceFile, instead: Mapping[ast.expr, str] | None = None
) -> str | None:
    """The text of an expression of a function, with what a call gives to its parameters; None where it reads what the caller has not.

    `instead` are parts of the expression that are written otherwise.
    """
    file, others = value.file, instead or {}
    given = {name: where.segment(one) for name, one in arguments_of(call, function)}
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == function.name
    if is_method and isinstance(call.func, ast.Attribute):
        given.setdefault("self", where.segment(call.func.value))
    elif function.name in _RUNS:
        given.setdefault("self", where.segment(call.func))
    own = all_parameters(function) | {one.name for one in bounds_of(function)}
    inside = {part for one in others for part in walk(one)}
    names = [one for one in walk(value.node) if isinstance(one, ast.Name) and one not in inside]
    if any(one.id not in given for one in names if one.id in own):
        return None
    if file is not where and any(one.id not in own and not hasattr(builtins, one.id) for one in names):
        return None  # a name of its module, which the caller's may not have
    start, text = file.span(value.node)[0], file.segment(value.node)
    parts: dict[ast.expr, str] = {one: given[one.id] for one in names if one.id in own}
    parts.update(others)
    for node, new in sorted(parts.items(), key=lambda each: -file.span(each[0])[0]):
        low, high = file.span(node)
        text = text[: low - start] + new + text[high - start :]
    return text
