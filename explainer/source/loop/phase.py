"""When a program switches `requires_grad`: in each step, for one network's turn, or for a phase of several steps or epochs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.loop.backward import find_backwards
from explainer.source.loop.carried import training_loops
from explainer.source.name import Function
from explainer.source.network.freeze import flag_of, owner_of
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bind_call
from explainer.source.value.callee import callees_of
from explainer.source.value.resolve import resolver_of

TURN, PHASE, ONCE = "turn", "phase", "once"
_DEPTH = 4
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """One place that switches parameters on or off, `is_on` None where a value of the run decides; `when` of TURN, PHASE, ONCE."""

    file: SourceFile
    node: ast.AST
    is_on: bool | None
    when: str


def find_switches(program: Program) -> tuple[Switch, ...]:
    """Every switch of whole modules, at the call of the helper that makes it where that is told the state."""
    return program.once(_find)


def _find(program: Program) -> Iterator[Switch]:
    for file in program.parsed():
        if "requires_grad" not in file.text:
            continue
        for node in file.walk():
            state = flag_of(node)
            if state is not None and not _is_selection(state, node, file):
                for where, site, is_on in _sites(state, node, file, program):
                    yield Switch(file=where, node=site, is_on=is_on, when=_when(site, where, program))


def _is_selection(state: ast.expr, node: ast.AST, file: SourceFile) -> bool:
    """Whether a flag is set by the name of each parameter: `p.requires_grad = "head" in name`."""
    loop = file.enclosing(node, ast.For)
    if isinstance(state, ast.Constant) or not isinstance(loop, ast.For) or owner_of(loop.iter) is None:
        return False
    own = {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}
    return any(isinstance(one, ast.Name) and one.id in own for one in walk(state))


def _sites(
    state: ast.expr, node: ast.AST, file: SourceFile, program: Program
) -> Iterator[tuple[SourceFile, ast.AST, bool | None]]:
    """Where the state is decided: at the flag, or at the calls of a helper that takes it as a parameter."""
    function = program.names(file).function_of(node)
    if isinstance(state, ast.Name) and function is not None and state.id in all_parameters(function):
        for where, call in _callers(function, file, program):
            given = bind_call(call, function, Value(call, where)).get(state.id)
            yield where, call, _constant(given.node) if given is not None else None
    else:
        yield file, node, _constant(state)


def _constant(node: ast.expr) -> bool | None:
    return bool(node.value) if isinstance(node, ast.Constant) else None


def _callers(function: Function, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The calls that may run a function, as far as the object that a method is called on is known."""
    for where, call in resolver_of(program).calls_of(function, file):
        if any(one.function is function for one in callees_of(call.func, where, program)):
            yield where, call


def _when(node: ast.AST, file: SourceFile, program: Program, depth: int = 0, *, is_conditional: bool = False) -> str:
    """How often a place is come by: up through its branches and loops, and through the calls of its function."""
    loops = {loop for _, loop, _ in training_loops(program)}
    below, above = node, file.parents.get(node)
    while above is not None and not isinstance(above, _FUNCTIONS):
        if isinstance(above, ast.If) and below is not above.test:
            if any(trains(one, file, program) for one in (above.body if below in above.body else above.orelse)):
                return TURN
            is_conditional = True
        elif above in loops:
            is_round = not any(one in loops for one in walk(above) if one is not above)
            return PHASE if is_conditional or not is_round else TURN
        elif _is_behind_training(below, above, file, program):
            return PHASE
        below, above = above, file.parents.get(above)
    if not isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)) or depth > _DEPTH:
        return ONCE
    found = {
        _when(call, where, program, depth + 1, is_conditional=is_conditional)
        for where, call in _callers(above, file, program)
    }
    return next((one for one in (TURN, PHASE) if one in found), ONCE)


def _is_behind_training(below: ast.AST, above: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether a statement follows another of its block that trains: a second stage of the same program."""
    block = getattr(above, "body", None)
    before = block[: block.index(below)] if isinstance(block, list) and below in block else []
    return any(isinstance(one, ast.stmt) and trains(one, file, program) for one in before)


def trains(node: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether a statement goes backward, itself or in a function that it calls; what it only defines does not count."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    backwards = {one.call for one in find_backwards(program)}
    for call in (one for one in walk(node) if isinstance(one, ast.Call)):
        if call in backwards:
            return True
        for one in callees_of(call.func, file, program) if depth < _DEPTH else ():
            body = one.function.body if isinstance(one.function.body, list) else [one.function.body]
            if any(trains(each, one.file, program, depth + 1) for each in body):
                return True
    return False
