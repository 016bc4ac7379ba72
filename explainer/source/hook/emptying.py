"""Whether a collection of hooks is emptied in each round of a training loop, or only where nothing comes by in a round."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.hook.collection import EMPTIED, Collection
from explainer.source.hook.registration import find_hooks
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.callee import callees_of, leads_to
from explainer.source.value.resolve import resolver_of

_DEPTH = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The statements that each step does, in the function, or the file, that holds them."""

    file: SourceFile
    block: Sequence[ast.stmt]
    function: Function | None

    @property
    def nodes(self) -> frozenset[ast.AST]:
        """All that stands in the round itself."""
        return frozenset(node for one in self.block for node in walk(one))

    def runs(self, statement: ast.stmt, program: Program) -> bool:
        """Whether a statement stands in the round, or in what it calls."""
        return statement in self.nodes or any(leads_to(statement, one, self.file, program) for one in self.block)


def is_emptied(collection: Collection, around: Round, program: Program) -> bool:
    """Whether a round, or what may run in one, makes a collection empty, or makes a new one."""
    return any(may_run_in(around, file, one, program) for file, one in _emptyings(collection))


def idle_method(collection: Collection, program: Program) -> str | None:
    """The name of a method that does nothing but empty the collection, and that nothing calls."""
    by_function: dict[Function, set[ast.stmt]] = {}
    for file, one in _emptyings(collection):
        function = program.names(file).function_of(one)
        if function is not None and program.names(file).class_of(one) is not None:
            by_function.setdefault(function, set()).add(one)
    for function, emptied in by_function.items():
        body = [one for one in function.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
        is_plain = len(function.args.args) == 1 and not function.name.startswith("_") and not function.decorator_list
        file = next(where for where, one in _emptyings(collection) if one in emptied)
        if is_plain and all(emptied & set(walk(one)) for one in body) and not list(_calls(function, file, program)):
            return function.name
    return None


def _emptyings(collection: Collection) -> Iterator[tuple[SourceFile, ast.stmt]]:
    yield from ((one.file, one.statement) for one in collection.uses if one.kind == EMPTIED)
    yield from collection.bindings
    yield from ((one.file, one.statement) for one in collection.containers)


def may_run_in(around: Round, file: SourceFile, statement: ast.stmt, program: Program, depth: int = 0) -> bool:
    """Whether a round may run a statement: it calls what holds it, or nothing says when that is called."""
    function = program.names(file).function_of(statement)
    if around.runs(statement, program) or depth > _DEPTH:
        return True
    if function is None or function is around.function:
        return False
    if any(one.callee.function is function for one in find_hooks(program)):
        return True
    calls = list(_calls(function, file, program))
    if not calls:
        return function.name != "__init__" and _may_be_run(function, program)
    return any(may_run_in(around, where, where.statement(call), program, depth + 1) for where, call in calls)


def _calls(function: Function, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The calls that may run a function: not those that run another of its name, nor its own."""
    own = set(walk(function))
    for where, call in resolver_of(program).calls_of(function, file):
        run = [one.function for one in callees_of(call.func, where, program)]
        if call not in own and (not run or function in run or function.name in ("__init__", "__call__", "forward")):
            yield where, call


def _may_be_run(function: Function, program: Program) -> bool:
    """Whether a function without a call may be run: Python or a library calls it, or it is handed on by its name."""
    if function.decorator_list or (function.name.startswith("__") and function.name != "__del__"):
        return not _leaves_context(function)
    if function.name == "forward" or function.name.startswith(("on_", "training_", "validation_")):
        return True
    for file in program.parsed():
        named = [*file.attributes.get(function.name, ()), *file.plain_names.get(function.name, ())]
        for node in named:
            above = file.parents.get(node)
            if isinstance(node.ctx, ast.Load) and not (isinstance(above, ast.Call) and above.func is node):
                return True
    return False


def _leaves_context(function: Function) -> bool:
    # A `with` in the round has been looked into by then.
    return function.name in ("__enter__", "__exit__")
