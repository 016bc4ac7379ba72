"""The operations of a program that made its data infinite or NaN in NumPy, where NumPy warned, or would have without `errstate`."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from typing import NamedTuple

from explainer.fix.codemod import Context
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.place import place_of

_WARNED = re.compile(r"(divide by zero|invalid value) encountered in (\w+)")
_REPLACES = ("numpy.where", "numpy.nan_to_num", "numpy.select", "torch.where", "torch.nan_to_num")


class Heard(NamedTuple):
    """An expression at whose line NumPy met what is not finite; `is_named` where the operation is written there."""

    file: SourceFile
    node: ast.expr
    operation: str
    words: str
    is_named: bool


def find_heard(context: Context) -> Iterator[Heard]:
    """The expression at each such line of the program: the operation by its name, else the call that may run it.

    A table in between (`SCALES[name](rows)`, `column.apply(scale)`) hides the name, and a library may have warned in its own file.
    """
    program = context.program
    for warning in context.incident.warnings:
        found = _WARNED.search(warning.message)
        path = place_of(warning.file or "", program.root) if found else None
        file = next((one for one in program.parsed() if one.path == path), None)
        if found is None:
            continue
        words, operation = found.groups()
        if file is not None:
            at = [one for one in file.walk() if isinstance(one, ast.expr) and one.lineno == warning.line]
            yield from _at(at, file, operation, words, context)
        elif warning.file and "site-packages" in warning.file.replace("\\", "/"):
            for one in program.parsed():
                nodes = [node for node in one.walk() if isinstance(node, ast.expr)]
                yield from (each for each in _at(nodes, one, operation, words, context) if each.is_named)


def _at(nodes: list[ast.expr], file: SourceFile, operation: str, words: str, context: Context) -> Iterator[Heard]:
    named = [one for one in nodes if _names(one, operation, file, context)]
    other = [one for one in nodes if isinstance(one, ast.Call) and _may_run(one, file, context)]
    kept = [one for one in named or other if not is_replaced(one, file, context)]
    if kept:
        yield Heard(file, kept[0], operation, words, bool(named))


def _names(node: ast.expr, operation: str, file: SourceFile, context: Context) -> bool:
    """Whether an expression is a call of NumPy's operation, is given it, or divides."""
    if isinstance(node, ast.BinOp):
        return "divide" in operation and isinstance(node.op, ast.Div)
    names = context.program.names(file)
    return isinstance(node, ast.Call) and any(
        names.qualified(one) == f"numpy.{operation}" for one in (node.func, *node.args)
    )


def _may_run(call: ast.Call, file: SourceFile, context: Context) -> bool:
    """Whether a call runs a function that is no name of a library: taken out of a table, bound to a name, applied by an object."""
    first = (dotted_name(call.func) or "").partition(".")[0]
    return not hasattr(builtins, first) and first not in context.program.names(file).imports


def is_replaced(node: ast.AST, file: SourceFile, context: Context) -> bool:
    """Whether what is not finite is left out at once: `np.where(x > 0, np.log(x), 0.0)`."""
    call = file.enclosing(node, ast.Call, ast.stmt)
    names = context.program.names(file)
    while isinstance(call, ast.Call):
        if names.is_call(call, *_REPLACES):
            return True
        call = file.enclosing(call, ast.Call, ast.stmt)
    return False
