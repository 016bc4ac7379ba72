"""Statements that add to a name or attribute, make it, or make it empty: `total += x`, `self.rewards.append(r)`, `del xs[:]`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

ADDS, MAKES, EMPTIES = "adds", "makes", "empties"
_GROWS = frozenset({"append", "extend"})
_SHRINKS = frozenset({"clear", "pop", "popleft", "remove"})
Key = tuple[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A statement that fills a pile, makes it, or makes it empty; `value` is what it adds, or makes it from."""

    file: SourceFile
    statement: ast.stmt
    target: ast.expr
    value: ast.expr | None
    kind: str


def find_uses(program: Program) -> dict[Key, list[Use]]:
    """The statements that add to, make or empty each name and attribute that something is added to."""
    every = [
        one
        for file in program.parsed()
        for node in file.walk()
        if isinstance(node, ast.stmt)
        for one in uses_in(node, file)
    ]
    filled = {_last_name(one.target) for one in every if one.kind == ADDS}
    found: dict[Key, list[Use]] = {}
    for one in every:
        if _last_name(one.target) in filled:  # only of these it is worth asking whose they are
            found.setdefault(key_of(one.target, one.file, program), []).append(one)
    return {key: uses for key, uses in found.items() if any(one.kind == ADDS for one in uses)}


def _last_name(target: ast.expr) -> str:
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""


def uses_in(node: ast.stmt, file: SourceFile) -> Iterator[Use]:
    """What one statement adds, makes or empties."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        yield Use(file=file, statement=node, target=node.target, value=node.value, kind=ADDS)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target, value in _parts(targets, node.value):
            if isinstance(target, ast.Subscript):
                yield Use(file=file, statement=node, target=target.value, value=None, kind=EMPTIES)
                continue
            term = _term(target, value)
            yield Use(
                file=file, statement=node, target=target, value=value if term is None else term,
                kind=MAKES if term is None else ADDS,
            )  # fmt: skip
    elif isinstance(node, ast.Delete):
        for one in node.targets:
            inner = one.value if isinstance(one, ast.Subscript) else one
            yield Use(file=file, statement=node, target=inner, value=None, kind=EMPTIES)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        call, func = node.value, node.value.func
        if func.attr in _GROWS and len(call.args) == 1:
            yield Use(file=file, statement=node, target=func.value, value=call.args[0], kind=ADDS)
        elif func.attr in _SHRINKS or func.attr.endswith("_"):
            yield Use(file=file, statement=node, target=func.value, value=None, kind=EMPTIES)


def _parts(targets: Sequence[ast.expr], value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets with what each gets: `a, b = [], []` part by part."""
    for target in targets:
        if not isinstance(target, (ast.Tuple, ast.List)):
            yield target, value
        elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            yield from zip(target.elts, value.elts, strict=True)
        else:
            yield from ((one, value) for one in target.elts)


def _term(target: ast.expr, value: ast.expr) -> ast.expr | None:
    """What `total = total + loss` adds to its target; None where it gives it another value."""
    name = dotted_name(target)
    if name is None or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    for side, other in ((value.left, value.right), (value.right, value.left)):
        if dotted_name(side) == name:
            return other
        inner = _term(target, side)
        if inner is not None:
            return value
    return None


def key_of(target: ast.expr, file: SourceFile, program: Program) -> Key:
    """What tells a name or attribute from others: an attribute counts by its last name, whoever holds the object."""
    if isinstance(target, ast.Attribute):
        return "attribute", target.attr
    if not isinstance(target, ast.Name):
        return "other", target
    if isinstance(file.parents.get(file.parents.get(target, target)), ast.ClassDef):
        return "attribute", target.id  # a dataclass's field
    function = program.names(file).function_of(target)
    return "name " + target.id, function if function is not None and target.id in _own(function) else file.tree


@lru_cache(maxsize=4096)
def _own(function: Function) -> frozenset[str]:
    """The names that a function, or one in it, binds or is given, without those that it takes from outside."""
    own, outer = {one.arg for one in walk(function.args) if isinstance(one, ast.arg)}, set[str]()
    for node in walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            outer |= set(node.names)
    return frozenset(own - outer)
