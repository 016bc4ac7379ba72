"""Values that one round of a training loop hands to the next: names read in a round before the round binds them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.loop.backward import find_backwards
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.entry import altered_by_calls, entries_in, has_graph, is_filled_first
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.lineage import (
    Scope,
    binds,
    changes,
    definitions,
    loops_of,
    reads,
    scope_of,
    statements_of,
    value_of,
)

TENSOR, TUPLE, LIST, UNKNOWN = "tensor", "tuple", "list", "unknown"
_PAIRS = ("torch.nn.LSTM", "torch.nn.LSTMCell")
_SINGLE = ("torch.nn.GRU", "torch.nn.RNN", "torch.nn.GRUCell", "torch.nn.RNNCell", "torch.nn.Linear")
_DEPTH = 4
_MAX_FORWARDS = 6  # what a module that is handed in may run: of many, each of which may run many, nothing is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A name that is carried through a training loop, the statements that bind it there, and what it was before the loop."""

    name: str
    file: SourceFile
    loop: ast.For | ast.While
    step: ast.stmt
    bindings: tuple[ast.stmt, ...]
    start: ast.expr | None


def training_loops(program: Program) -> tuple[tuple[SourceFile, ast.For | ast.While, ast.stmt], ...]:
    """The loops whose rounds run a backward, with the statement that does: the call itself, or that of a helper."""
    return program.once(_training_loops)


def _training_loops(program: Program) -> Iterator[tuple[SourceFile, ast.For | ast.While, ast.stmt]]:
    calls = find_backwards(program)
    functions = {function for one in calls if (function := program.names(one.file).function_of(one.call))}
    for one in calls:
        for loop in loops_of(one.statement, one.file):
            yield one.file, loop, one.statement
    if not functions:
        return
    flow = flow_of(program)
    for file in program.parsed():
        for node in file.walk():
            target = flow.target_of(node, file) if isinstance(node, ast.Call) else None
            if target is not None and target[1] in functions:
                statement = file.statement(node)
                for loop in loops_of(statement, file):
                    yield file, loop, statement


def find_carried(program: Program) -> Iterator[Carried]:
    """Every differentiable value that a training loop carries, innermost loops first."""
    seen: set[tuple[str, ast.AST]] = set()
    for file, loop, step in training_loops(program):
        scope = scope_of(loop, file, program)
        if scope is None:
            continue
        inside = {one: _changed(one, file, program) for one in _inside(loop, scope)}
        for name in _carried_names(loop, inside, file):
            bindings = tuple(
                one
                for one, changed in inside.items()
                if name in binds(one) | changed and not isinstance(one, (ast.For, ast.With))
            )
            if (name, bindings[0]) in seen or not any(_is_differentiable(one, name, file, program) for one in bindings):
                continue
            seen.add((name, bindings[0]))
            made = definitions(name, loop, scope)
            start = value_of(made[0], name) if made else None
            yield Carried(name=name, file=file, loop=loop, step=step, bindings=bindings, start=start)


def _inside(loop: ast.For | ast.While, scope: Scope) -> list[ast.stmt]:
    return [
        one for one in statements_of(scope) if loop is not one and loop.lineno <= one.lineno <= (loop.end_lineno or 0)
    ]


def _changed(statement: ast.stmt, file: SourceFile, program: Program) -> set[str]:
    """The roots to whose value a statement adds, or gives an entry or attribute, itself or by what it calls."""
    entries = {one.name for one in entries_in(statement)}
    return changes(statement) | entries | altered_by_calls(statement, file, program)


def _carried_names(loop: ast.For | ast.While, inside: Mapping[ast.stmt, set[str]], file: SourceFile) -> Iterator[str]:
    """Names whose first use in a round is a read, where `inside` are the round's statements with what they change."""
    known: set[str] = set(binds(loop))
    carried: dict[str, None] = {}
    bound = {name for one, changed in inside.items() for name in binds(one) | changed}
    for one, changed in inside.items():
        parts: list[ast.AST | None] = [one]
        if isinstance(one, (ast.For, ast.While, ast.If, ast.With, ast.Try)):
            parts = [getattr(one, "iter", None), getattr(one, "test", None)]
        for name in set[str]().union(*(reads(part) for part in parts), changed):
            if name in bound and name not in known:
                carried[name] = None
        known |= binds(one) - set(carried)
    yield from (one for one in carried if not is_filled_first(one, list(inside), file))


def _is_differentiable(statement: ast.stmt, name: str, file: SourceFile, program: Program) -> bool:
    value = value_of(statement, name)
    if name in altered_by_calls(statement, file, program):
        return True
    if value is None:
        return False
    if isinstance(statement, ast.Expr) and isinstance(value, ast.Call):
        return any(flow_of(program).reach_of(one, file) != Reach.NONE and reads(one) for one in value.args)
    others = reads(value) - {name}
    return bool(others) and has_graph(value, statement, file, program)


def form_of(carried: Carried, program: Program) -> str:
    """Whether a carried value is a tensor, a tuple of tensors or a list."""
    if isinstance(carried.start, (ast.List, ast.ListComp)) or _is_deque(carried.start):
        return LIST
    if isinstance(carried.start, ast.Tuple):
        return TUPLE
    found = [form_of_statement(one, carried.name, carried.file, program) for one in carried.bindings]
    made = next((one for one in found if one != UNKNOWN), UNKNOWN)
    return made if made != UNKNOWN else _started(carried.start, carried.file, program)


def _is_deque(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and (dotted_name(value.func) or "").rpartition(".")[2] in ("deque", "list")


def _started(value: ast.expr | None, file: SourceFile, program: Program) -> str:
    if not isinstance(value, ast.Call):
        return UNKNOWN
    called = program.names(file).qualified(value.func) or ""
    if called.startswith("torch."):
        return TENSOR
    target = program.find_function(called)
    for one in walk(target[1]) if target else ():
        if isinstance(one, ast.Return):
            return (
                TUPLE
                if isinstance(one.value, ast.Tuple)
                else _started(one.value, target[0], program)
                if target
                else UNKNOWN
            )
    return UNKNOWN


def form_of_statement(statement: ast.stmt, name: str, file: SourceFile, program: Program, depth: int = 0) -> str:
    """What a statement gives to a name, followed through modules of the program."""
    value = value_of(statement, name)
    if isinstance(value, (ast.BinOp, ast.UnaryOp)):
        return TENSOR
    if not isinstance(value, ast.Call) or not isinstance(statement, ast.Assign) or depth > _DEPTH:
        return UNKNOWN
    place = _place(statement.targets[0], name)
    return UNKNOWN if place is None else _returned(value, place, file, program, depth)


def _place(target: ast.expr, name: str) -> int | None:
    """At which place of a tuple a name stands: -1 where it gets the whole value; None deeper inside."""
    if dotted_name(target) == name:
        return -1
    for index, one in enumerate(target.elts if isinstance(target, ast.Tuple) else []):
        if dotted_name(one) == name:
            return index
    return None


def _returned(call: ast.Call, place: int, file: SourceFile, program: Program, depth: int) -> str:
    flow = flow_of(program)
    made = flow.constructor_of(call.func, file)
    called = program.names(file).qualified(made.func if made is not None else call.func) or ""
    if called in _PAIRS:
        return TUPLE if place == -1 or (place == 1 and called == _PAIRS[0]) else TENSOR
    if called in _SINGLE or called.startswith("torch."):
        return TENSOR
    target = flow.target_of(call, file)
    if target is not None:
        return _of_function(target, place, program, depth)
    forwards = list(_forwards(program)) if made is None else []
    if len(forwards) > _MAX_FORWARDS:
        return UNKNOWN
    forms = {_of_function(each, place, program, depth) for each in forwards} - {UNKNOWN}
    return forms.pop() if len(forms) == 1 else UNKNOWN


def _forwards(program: Program) -> Iterator[tuple[SourceFile, Function]]:
    """What a module that is handed in as an argument may run: every `forward` of the program."""
    return ((file, function) for file, function in program.functions() if function.name == "forward")


def _of_function(target: tuple[SourceFile, Function], place: int, program: Program, depth: int) -> str:
    if depth > _DEPTH:
        return UNKNOWN
    for one in walk(target[1]):
        if isinstance(one, ast.Return) and one.value is not None:
            parts = one.value.elts if isinstance(one.value, ast.Tuple) else []
            if place < 0 or place < len(parts):
                return _of_value(parts[place] if place >= 0 else one.value, one, target, program, depth)
    return UNKNOWN


def _of_value(value: ast.expr, at: ast.stmt, target: tuple[SourceFile, Function], program: Program, depth: int) -> str:
    file, function = target
    if isinstance(value, ast.Tuple):
        return TUPLE
    if isinstance(value, ast.Call):
        return _returned(value, -1, file, program, depth + 1)
    name = dotted_name(value)
    made = definitions(name, at, function) if name else []
    return form_of_statement(made[-1], name or "", file, program, depth + 1) if made else UNKNOWN


def holds_graph(value: ast.expr, statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a gradient passes through a value, or through a part of the tuple, list or dictionary that it is."""
    parts = (
        value.elts if isinstance(value, (ast.Tuple, ast.List)) else value.values if isinstance(value, ast.Dict) else ()
    )
    if parts:
        return any(holds_graph(one, statement, file, program) for one in parts)
    return has_graph(value, statement, file, program)
