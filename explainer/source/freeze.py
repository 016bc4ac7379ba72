"""Where a program switches `requires_grad` of parameters off and on: loops over them, `requires_grad_(False)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from explainer.source.binding import Value
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.resolve import resolver_of
from explainer.source.tree import walk

_LISTS = frozenset({"parameters", "named_parameters"})


@dataclass(frozen=True)
class Freeze:
    """One switch: `owner` is the module whose parameters it takes, `test` the condition on each of them where there is one.

    `statement` is the loop or the call; `flag` the statement or call that sets the flag.
    """

    file: SourceFile
    statement: ast.stmt
    flag: ast.AST
    owner: ast.expr
    is_on: bool
    test: ast.expr | None = None
    is_negated: bool = False


@lru_cache(maxsize=4)
def find_freezes(program: Program) -> tuple[Freeze, ...]:
    """Every switch of the program, in the order of its files."""
    return tuple(one for file in program.parsed() for node in file.walk() for one in _at(node, file))


def _at(node: ast.AST, file: SourceFile) -> Iterator[Freeze]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        state = _state(node.args[0] if node.args else None)
        owner = node.func.value
        if isinstance(state, bool) and not _is_looped(node, file):
            yield Freeze(file, file.statement(node), node, owner, state)
    elif isinstance(node, ast.For):
        yield from _loop(node, file)


def _state(node: ast.expr | None) -> bool | None:
    if node is None:
        return True
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, bool) else None


def _is_looped(node: ast.Call, file: SourceFile) -> bool:
    loop = file.enclosing(node, ast.For)
    return isinstance(loop, ast.For) and owner_of(loop.iter) is not None


def owner_of(iterated: ast.expr) -> ast.expr | None:
    """`model` of `model.parameters()`, also inside `enumerate`, `list` and the like."""
    if not isinstance(iterated, ast.Call):
        return None
    if isinstance(iterated.func, ast.Attribute) and iterated.func.attr in _LISTS:
        return iterated.func.value
    return owner_of(iterated.args[0]) if iterated.args and isinstance(iterated.func, ast.Name) else None


def _loop(loop: ast.For, file: SourceFile) -> Iterator[Freeze]:
    owner = owner_of(loop.iter)
    if owner is None:
        return
    for node in walk(loop):
        state: bool | None = None
        if isinstance(node, ast.Assign) and (dotted_name(node.targets[0]) or "").endswith(".requires_grad"):
            state = _state(node.value)
            if state is None and isinstance(node.value, ast.expr):
                # `p.requires_grad = "head" in name` freezes what the test does not take
                yield Freeze(file, loop, node, owner, is_on=False, test=node.value, is_negated=True)
                continue
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
            state = _state(node.args[0] if node.args else None)
        if state is not None:
            yield _conditional(loop, node, owner, file, state=state)


def _conditional(loop: ast.For, node: ast.AST, owner: ast.expr, file: SourceFile, *, state: bool) -> Freeze:
    above = file.parents.get(node)
    below: ast.AST = node
    while above is not None and above is not loop:
        if isinstance(above, ast.If):
            negated = below not in above.body
            return Freeze(file, loop, node, owner, state, above.test, negated)
        below, above = above, file.parents.get(above)
    skip = next(
        (one for one in loop.body if isinstance(one, ast.If) and any(isinstance(x, ast.Continue) for x in one.body)),
        None,
    )
    if skip is not None and skip.lineno < getattr(node, "lineno", 0):
        return Freeze(file, loop, node, owner, state, skip.test, is_negated=True)
    return Freeze(file, loop, node, owner, state)


@lru_cache(maxsize=4)
def frozen_constructors(program: Program) -> frozenset[ast.AST]:
    """The calls that make modules which the program freezes as a whole and never switches on again, in part or whole."""
    freezes = find_freezes(program)
    if any(one.is_on for one in freezes):
        return frozenset()
    resolver = resolver_of(program)
    found: set[ast.AST] = set()
    for one in freezes:
        if one.test is None and not _is_extended(one):
            found |= {made.node for made in resolver.constructors_of(Value(one.owner, one.file))}
    return frozenset(found)


def _is_extended(freeze: Freeze) -> bool:
    """Whether a part of the frozen module is assigned anew afterwards: a fresh head."""
    name = dotted_name(freeze.owner)
    return name is not None and any(
        isinstance(node, ast.Assign)
        and node.lineno > freeze.statement.lineno
        and any((dotted_name(one) or "").startswith(f"{name}.") for one in node.targets)
        for node in freeze.file.walk()
    )
