"""Windows that go along a sequence: `ids[i:i + n]` in a loop over `i`, `ids.unfold(0, n, 1)`, `sliding_window_view(ids, n)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bounds_of, scope_of
from explainer.source.value.resolve import resolver_of

# What makes the same numbers another kind of sequence.
CONVERTERS = frozenset(
    {"list", "tuple", "tensor", "as_tensor", "LongTensor", "IntTensor", "array", "asarray", "from_numpy"}
)
_METHODS = frozenset({"tolist", "numpy", "cpu", "to", "long", "clone", "copy"})
_WINDOWS = frozenset({"unfold", "sliding_window_view", "windowed", "sliding_window", "as_strided"})
_LISTS = (ast.ListComp, ast.GeneratorExp, ast.SetComp)
_DEPTH = 5


def is_window(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether an expression is a piece of a sequence, of some length, whose place moves along it, or all such pieces."""
    return _is_window(Value(node, file), program, 0)


def _is_window(value: Value, program: Program, depth: int) -> bool:
    node, file = value.node, value.file
    if depth > _DEPTH:
        return False
    if isinstance(node, ast.Subscript):
        piece = node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        if isinstance(piece, ast.Slice):
            return piece.upper is not None and moves(piece.lower, file)
        return _is_window(replace(value, node=node.value), program, depth + 1)
    if isinstance(node, _LISTS):
        return _is_window(replace(value, node=node.elt), program, depth + 1)
    if isinstance(node, ast.Call):
        last = (dotted_name(node.func) or "").rpartition(".")[2] or getattr(node.func, "attr", "")
        given = node.args[0] if last in CONVERTERS and node.args else None
        if last in _METHODS and isinstance(node.func, ast.Attribute):
            given = node.func.value
        return last in _WINDOWS or (given is not None and _is_window(replace(value, node=given), program, depth + 1))
    if dotted_name(node) is None:
        return False
    return any(_is_window(one, program, depth + 1) for one in resolver_of(program).behind(value))


def moves(node: ast.expr | None, file: SourceFile) -> bool:
    """Whether a place is counted by a loop around it, or given by who calls: `i`, `start + 1`; not `0`, `-n`, `len(prompt)`."""
    for name in walk(node) if node is not None else ():
        if isinstance(name, ast.Name) and not isinstance(file.parents.get(name), ast.Call):
            scope = scope_of(name, file)
            if name.id in set(_counted(name, file)) or (
                not isinstance(scope, ast.Module)
                and name.id in all_parameters(scope)
                and not any(one.name == name.id for one in bounds_of(scope))
            ):
                return True
    return False


def _counted(node: ast.AST, file: SourceFile) -> Iterator[str]:
    """The names that the loops around a node, in its own scope, bind or move on."""
    scope = scope_of(node, file)
    above = file.parents.get(node)
    while above is not None and above is not scope:
        if isinstance(above, (ast.For, ast.AsyncFor)):
            yield from _names(above.target)
        elif isinstance(above, ast.While):
            yield from (
                one.target.id
                for one in walk(above)
                if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)
            )
        elif isinstance(above, (*_LISTS, ast.DictComp)):
            yield from (name for one in above.generators for name in _names(one.target))
        above = file.parents.get(above)


def _names(target: ast.AST) -> Iterator[str]:
    return (one.id for one in walk(target) if isinstance(one, ast.Name))
