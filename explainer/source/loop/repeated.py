"""Which functions of a program run in each training step, and which only before."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from explainer.source.file import SourceFile
from explainer.source.loop.backward import find_backwards
from explainer.source.loop.carried import training_loops
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.callee import callees_of
from explainer.source.value.lineage import loop_of
from explainer.source.value.resolve import resolver_of

# Hooks of trainers that run once, before the first step.
_ONCE = frozenset(
    {"__init__", "__post_init__", "setup", "prepare_data", "configure_model", "on_fit_start", "on_train_start"}
)
_CALLS = 4
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@lru_cache(maxsize=2)
def run_in_steps(program: Program) -> frozenset[ast.AST]:
    """The functions that a training step runs: what calls backward, what a training loop calls, and all that these call."""
    todo: list[tuple[SourceFile, ast.AST]] = [(file, loop) for file, loop, _ in training_loops(program)]
    found: set[ast.AST] = set()
    for one in find_backwards(program):
        around = program.names(one.file).function_of(one.call)
        if around is not None and loop_of(one.call, one.file) is None:
            found.add(around)
            todo.append((one.file, around))
    while todo:
        file, node = todo.pop()
        for call in walk(node):
            for where, function in _called(call, file, program) if isinstance(call, ast.Call) else ():
                if function not in found:
                    found.add(function)
                    todo.append((where, function))
    return frozenset(found)


def _called(call: ast.Call, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, ast.AST]]:
    """The functions that a call may run; of a module its `forward`, of a class nothing that a step repeats."""
    for one in callees_of(call.func, file, program):
        yield one.file, one.function
    resolver = resolver_of(program)
    for where, owner in resolver.classes_of(Value(call.func, file)):
        method = resolver.method(owner, "forward", where)
        if method is not None:
            yield method


@lru_cache(maxsize=2)
def _loops(program: Program) -> frozenset[ast.AST]:
    return frozenset(loop for _, loop, _ in training_loops(program))


@lru_cache(maxsize=2)
def _seldom(program: Program) -> frozenset[ast.AST]:
    """The loops of which not every round goes back: `if len(losses) == 5: self.apply(losses)`."""
    kinds = (ast.For, ast.While, ast.If)
    found = {loop for file, loop, step in training_loops(program) if isinstance(file.enclosing(step, *kinds), ast.If)}
    return frozenset(found - {file.enclosing(step, *kinds) for file, _, step in training_loops(program)})


def is_in_step(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether a training step runs a node: a function that it calls holds it, or the training loop itself."""
    repeated = run_in_steps(program) | _loops(program)
    above = file.parents.get(node)
    while above is not None and above not in repeated:
        above = file.parents.get(above)
    return above is not None


def is_run_again(function: Function, file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether one step runs a function several times: a loop within a round of the training calls it, or calls what calls it."""
    goes_back = {program.names(one.file).function_of(one.call) for one in find_backwards(program)}
    if function in goes_back or depth > _CALLS:
        return False
    for where, call in resolver_of(program).calls_of(function, file):
        if not _may_run(call, where, function, program):
            continue
        around = where.enclosing(call, ast.For, ast.While, *_COMPREHENSIONS, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(around, (ast.For, ast.While, *_COMPREHENSIONS)):
            if around not in _loops(program) - _seldom(program) and is_in_step(call, where, program):
                return True
        elif isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_run_again(
            around, where, program, depth + 1
        ):
            return True
    return False


def _may_run(call: ast.Call, file: SourceFile, function: Function, program: Program) -> bool:
    """Whether a call of that name runs the function: a module's `forward`, or by name."""
    if function.name in ("forward", "__call__"):
        return True  # found by the class of what is called
    return any(one.function is function for one in callees_of(call.func, file, program))


def is_run_once(function: Function, file: SourceFile, program: Program) -> bool:
    """Whether a function runs before the training and not again: no step and no loop calls it."""
    if function in run_in_steps(program):
        return False
    calls = resolver_of(program).calls_of(function, file) if function.name not in _ONCE else []
    looped = [
        call for where, call in calls if loop_of(call, where) is not None or where.enclosing(call, *_COMPREHENSIONS)
    ]
    return not looped and (bool(calls) or function.name in _ONCE)
