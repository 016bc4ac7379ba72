"""Modules whose training is over: the optimizers that have their parameters stay in functions that loop over other things."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.never_trained import PARAMETERS
from explainer.source.network.optimized import optimizer_calls, tensors_given
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, find_calls, scope_of
from explainer.source.value.resolve import resolver_of


def is_trained_apart(module: Value, loops: list[ast.For], program: Program) -> bool:
    """Whether each listing of a module's parameters is for an optimizer of a function that hands it on to nobody.

    A teacher that `train_teacher()` has returned is trained no more; the loops are those that use it as it is.
    """
    made = {one.node for one in resolver_of(program).constructors_of(module)}
    listed = list(_listed(made, program)) if made else []
    given = {
        one.value.node: (file, call)
        for file, call in optimizer_calls(program)
        for one in tensors_given(call, file, program)
    }
    if not listed or any(one not in given for one in listed):
        return False
    return all(_stays(call, file, loops) for file, call in (given[one] for one in listed))


def _listed(made: set[ast.expr], program: Program) -> Iterator[ast.Call]:
    for file, call in find_calls(program):
        if isinstance(call.func, ast.Attribute) and call.func.attr in PARAMETERS:
            owner = resolver_of(program).constructors_of(Value(call.func.value, file))
            if made & {one.node for one in owner}:
                yield call


def _stays(call: ast.Call, file: SourceFile, loops: list[ast.For]) -> bool:
    """Whether the optimizer that a call makes is a name of its function, of which nothing but methods are asked."""
    statement, scope = file.statement(call), scope_of(call, file)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
    if not isinstance(scope, ast.FunctionDef) or not isinstance(target, ast.Name):
        return False
    nodes = set(walk(scope))
    reads = [one for one in nodes if dotted_name(one) == target.id and one is not target]
    return not nodes & set(loops) and all(isinstance(file.parents.get(one), ast.Attribute) for one in reads)
