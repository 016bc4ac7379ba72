"""Keeps the graph of what a cache holds for one step only: `rows[i] = row` for `rows[i] = row.detach()`.

A detach on the way into a cache keeps graphs from outliving their step. Where each round of the training loop empties the
cache or makes it anew, it protects from nothing, and parameters of the optimizer never train. Only a traced cut is taken out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.graph.uncut import uncut
from explainer.model.trace import STARVING_CUT
from explainer.source.file import SourceFile
from explainer.source.graph.cut import DATA, DETACH, Cut, cut_of
from explainer.source.loop.carried import training_loops
from explainer.source.name import Function, dotted_name
from explainer.source.place import place_of
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.flow import flow_of
from explainer.source.value.lineage import binds, root_of, statements_of

_ADDS = frozenset({"append", "extend", "insert", "setdefault", "update", "appendleft"})
_BECAUSE = "right where what fills the cache is to be trained; else leave its parameters out of the optimizer"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each traced cut on the way into a cache that does not outlive a step."""
    program = context.program
    for line in context.incident.traced:
        path = place_of(line.file, program.root) if line.kind == STARVING_CUT else None
        statement = program.at(path, line.line) if path is not None else None
        if path is None or statement is None:
            continue
        file = program.files[path]
        for name, value in _stored(statement):
            cache = _Cache(name=name, file=file, filled=statement)
            cuts = [cut for node in _ends(value) if (cut := cut_of(node, file, program)) is not None]
            if len(cuts) != 1 or cuts[0].kind not in (DETACH, DATA) or not _is_emptied(cache, program):
                continue
            yield from _proposal(cuts[0], name, program)


def _proposal(cut: Cut, name: str, program: Program) -> Iterator[Proposal]:
    edits = uncut(cut, program)
    if edits:
        yield Proposal(
            edits=tuple(edits),
            culprit=culprit_of(cut.file, cut.node, f"cuts what `{name}` holds, which each step empties anyway"),
            belief=2.0,
            applicability="unsafe",
            because=_BECAUSE,
        )


def _stored(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The container that a statement puts values into, and each value: `rows[i] = x`, `rows.append(x)`, `rows = {i: x ...}`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        name = root_of(target.value) if isinstance(target, ast.Subscript) else dotted_name(target)
        if name is None:
            return
        if isinstance(target, ast.Subscript):
            yield name, value
        elif isinstance(value, (ast.DictComp, ast.ListComp)):
            yield name, value.value if isinstance(value, ast.DictComp) else value.elt
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        if isinstance(func, ast.Attribute) and func.attr in _ADDS and (name := dotted_name(func.value)):
            for one in statement.value.args:
                yield name, one.value if isinstance(one, ast.DictComp) else one


def _ends(value: ast.expr) -> list[ast.expr]:
    """The calls that a value ends with: `x.detach().clone()` is two."""
    found: list[ast.expr] = []
    node: ast.expr | None = value
    while isinstance(node, (ast.Call, ast.Attribute)):
        found.append(node)
        func = node.func if isinstance(node, ast.Call) else node
        node = func.value if isinstance(func, ast.Attribute) else None
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cache:
    """A container by its name, the file that fills it, and the statement that does."""

    name: str
    file: SourceFile
    filled: ast.stmt


def _is_emptied(cache: _Cache, program: Program) -> bool:
    """Whether every round of each training loop empties the container, or makes it or its owner anew."""
    loops = list(dict.fromkeys((where, loop) for where, loop, _ in training_loops(program)))
    inner = [
        (where, loop) for where, loop in loops
        if not any(other is not loop and other in walk(loop) for _, other in loops)
    ]  # fmt: skip
    return bool(inner) and all(_empties_in(loop, where, cache, program) for where, loop in inner)


def _empties_in(loop: ast.For | ast.While, where: SourceFile, cache: _Cache, program: Program) -> bool:
    """Whether a statement of the loop's own block does, under no condition."""
    name, file = cache.name, cache.file
    owner = program.names(file).class_of(cache.filled) if name.startswith("self.") else None
    for one in loop.body:
        if owner is None and where is file and cache.filled in walk(loop) and _makes_empty(one, name):
            return True
        value = one.value if isinstance(one, (ast.Expr, ast.Assign)) else None
        if not isinstance(value, ast.Call):
            continue
        if isinstance(one, ast.Assign) and owner is not None and _called(value) == owner.name:
            return True  # the object that holds the cache is made in each round
        if owner is None and _clears(value, name) and where is file:
            return True
        target = flow_of(program).target_of(value, where)
        if owner is not None and target is None:
            target = _method(value, owner, file)
        if target is not None and target[0] is file and _empties(target[1], name, owner, program, file):
            return True
    return False


def _called(call: ast.Call) -> str:
    return (dotted_name(call.func) or "").rpartition(".")[2]


def _method(call: ast.Call, owner: ast.ClassDef, file: SourceFile) -> tuple[SourceFile, Function] | None:
    """The method of the class that a call names, where an object's class is not seen: `items.clear()`."""
    wanted = call.func.attr if isinstance(call.func, ast.Attribute) else None
    found = [one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == wanted]
    return (file, found[0]) if found else None


def _empties(function: Function, name: str, owner: ast.ClassDef | None, program: Program, file: SourceFile) -> bool:
    """Whether a function's own block empties the container: a method of its class, or one that shares its name."""
    if owner is not None and program.names(file).class_of(function) is not owner:
        return False
    return any(
        _makes_empty(one, name)
        or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) and _clears(one.value, name))
        for one in statements_of(function)
        if one in function.body
    )


def _makes_empty(statement: ast.stmt, name: str) -> bool:
    """`rows = {}`, `self.rows = []`, `rows = dict()`."""
    if name not in binds(statement) or not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return False
    value = statement.value
    if isinstance(value, ast.Call):
        return _called(value) in ("dict", "list", "defaultdict", "OrderedDict", "deque") and not any(
            isinstance(one, (ast.List, ast.Dict)) for one in value.args
        )
    return (isinstance(value, ast.Dict) and not value.keys) or (isinstance(value, ast.List) and not value.elts)


def _clears(call: ast.Call, name: str) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "clear" and dotted_name(call.func.value) == name
