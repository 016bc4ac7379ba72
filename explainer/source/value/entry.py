"""What a statement gives to an entry or attribute of a name rather than to the name: `state["h"] = h`, `memory.c = c`.

Also by a call: of a function that gives its parameter's entries values with a graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bind_call
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.lineage import root_of, sources, statements_of
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 3
_NO_STATE = frozenset({"grad", "data", "requires_grad", "training"})
_BLOCKS = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.Try)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry or attribute of a name to which a statement gives a value, which may be a part of `value`."""

    name: str
    place: ast.Subscript | ast.Attribute
    value: ast.expr

    @property
    def key(self) -> str | None:
        """The word by which it is known: `h` of `state["h"]` and of `memory.h`; None where that varies."""
        return _key(self.place)


def entries_in(statement: ast.stmt) -> Iterator[Entry]:
    """The entries and attributes that a statement gives a value."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    else:
        return
    todo = list(targets)
    for target in todo:
        name = root_of(target)
        if isinstance(target, (ast.Tuple, ast.List)):
            todo += target.elts
        elif name is None or statement.value is None or name == dotted_name(target):
            continue
        elif isinstance(target, ast.Subscript) or (isinstance(target, ast.Attribute) and target.attr not in _NO_STATE):
            yield Entry(name, target, statement.value)


def altered_by_calls(statement: ast.stmt, file: SourceFile, program: Program, depth: int = 0) -> set[str]:
    """The names that a statement hands to functions of the program which give their entries values with a graph."""
    found: set[str] = set()
    for call in walk(statement) if not isinstance(statement, _BLOCKS) else ():
        if not isinstance(call, ast.Call) or not any(dotted_name(one) for one in _given(call)):
            continue
        target = flow_of(program).target_of(call, file) or resolver_of(program).function_of(call, Value(call, file))
        altered = altered_parameters(target, program, depth) if target is not None else frozenset()
        bound = bind_call(call, target[1], Value(call, file)) if target is not None and altered else {}
        found |= {name for one in altered if one in bound and (name := dotted_name(bound[one].node))}
    return found


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(one.value for one in call.keywords)]


def altered_parameters(target: tuple[SourceFile, Function], program: Program, depth: int = 0) -> frozenset[str]:
    """The parameters of a function to whose entries or attributes it gives values with a graph."""
    file, function = target
    arguments = function.args
    known = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} - {"self", "cls"}
    found: set[str] = set()
    for statement in statements_of(function) if known else ():
        found |= {one.name for one in entries_in(statement) if has_graph(one.value, statement, file, program)} & known
        if depth < _DEPTH:
            found |= altered_by_calls(statement, file, program, depth + 1) & known
    return frozenset(found)


def has_graph(value: ast.expr, statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a gradient passes through a value, or through what a name in it was filled with."""
    if is_without_grad(value, file, program):
        return False
    parts = [value, *(part for _, part in sources(value, statement, file, program))]
    if any(flow_of(program).reach_of(part, file) != Reach.NONE for part in parts):
        return True
    return provenance_of(program).trace(Value(value, file)).live


def is_filled_first(name: str, statements: Sequence[ast.stmt], file: SourceFile) -> bool:
    """Whether each entry of a name is given a value in a round before the round reads it."""
    filled: set[str] = set()
    plain = [one for one in statements if not isinstance(one, _BLOCKS)]
    wanted = {one.key for each in plain for one in entries_in(each) if one.name == name}
    for one in plain:
        stored = [entry for entry in entries_in(one) if entry.name == name]
        inside = {node for entry in stored for node in walk(entry.place)}
        for node in walk(one):
            if node in inside or not _is_read(node, name):
                continue
            above = file.parents.get(node)
            key = _key(above) if isinstance(above, (ast.Subscript, ast.Attribute)) and above.value is node else None
            if key not in filled if key is not None else not wanted <= filled:
                return False
        filled |= {key for entry in stored if (key := entry.key) is not None}
    return bool(wanted) and None not in wanted


def _is_read(node: ast.AST, name: str) -> bool:
    is_name = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
    return is_name and dotted_name(node) == name


def _key(place: ast.Subscript | ast.Attribute) -> str | None:
    if isinstance(place, ast.Attribute):
        return place.attr
    return str(place.slice.value) if isinstance(place.slice, ast.Constant) else None
