"""Calls that can be made a second time for the same: of functions that keep nothing and take nothing away."""

from __future__ import annotations

import ast

from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, walk_scope
from explainer.source.value.resolve import resolver_of

_DEPTH = 4
_TAKES = frozenset(
    {"next", "pop", "popleft", "popitem", "append", "add", "update", "extend", "shuffle", "write", "save", "put"}
)


def repeatable(call: ast.Call, file: SourceFile, program: Program) -> tuple[SourceFile, Function] | None:
    """The function of the program that a call runs, where a second call gives the same from the same weights."""
    target = resolver_of(program).function_of(call, Value(call, file))
    if target is None or any(isinstance(one, ast.Call) for each in call.args for one in walk(each)):
        return None
    return target if _is_repeatable(target, program, 0) else None


def _is_repeatable(target: tuple[SourceFile, Function], program: Program, depth: int) -> bool:
    """Whether a function keeps nothing and takes nothing away: no attribute is bound, no batch drawn, no optimizer stepped."""
    file, function = target
    resolver = resolver_of(program)
    for node in walk_scope(function):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            root = node.value
            if isinstance(node, ast.Attribute) or not isinstance(root, ast.Name):
                return False
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom)):
            return False
        if not isinstance(node, ast.Call):
            continue
        method = getattr(node.func, "attr", getattr(node.func, "id", ""))
        is_own = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and any(
            one.name == node.func.value.id for one in bounds_of(function)
        )  # fmt: skip
        if method in ("backward", "step") or (method in _TAKES and not is_own) or (method == "sample" and node.args):
            return False
        inner = resolver.function_of(node, Value(node, file)) if depth < _DEPTH else None
        if inner is not None and not _is_repeatable(inner, program, depth + 1):
            return False
    return True


def attributes_read(node: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> frozenset[str]:
    """The last names of the attributes that a node reads, and that the functions read which it calls."""
    found: set[str] = set()
    for one in walk(node):
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load):
            found.add(one.attr)
        target = resolver_of(program).function_of(one, Value(one, file)) if isinstance(one, ast.Call) else None
        if target is not None and depth < _DEPTH:
            found |= attributes_read(target[1], target[0], program, depth + 1)
    return frozenset(found)
