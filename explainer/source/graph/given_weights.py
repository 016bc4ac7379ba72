"""The weights that a forward runs with in place of the module's own: the second argument of `functional_call`."""

from __future__ import annotations

import ast

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import definitions, lineage, value_of
from explainer.source.value.resolve import resolver_of

FUNCTIONAL_CALLS = ("torch.func.functional_call", "torch.nn.utils.stateless.functional_call")
_DEPTH = 3


def weights_behind(loss: ast.expr, at: ast.stmt, file: SourceFile, program: Program, depth: int = 0) -> set[str]:
    """The names, in the function that holds `at`, of the weights that a loss was computed with.

    Where the loss is handed to the function, those parameters of it that get the weights at each of its calls.
    """
    found: set[str] = set()
    computed = [loss, *(value_of(one) for one in lineage(loss, at, file, program))]
    for call in (one for value in computed if value is not None for one in walk(value) if isinstance(one, ast.Call)):
        found |= {name for one in _given_to(call, file, program, depth) if (name := dotted_name(one)) is not None}
    function = program.names(file).function_of(at)
    if found or function is None or depth >= _DEPTH or not isinstance(loss, ast.Name):
        return found
    if definitions(loss.id, at, function):
        return set()
    return _by_callers(loss.id, function, file, program, depth)


def _given_to(call: ast.Call, file: SourceFile, program: Program, depth: int) -> list[ast.expr]:
    """The weights among the arguments of a call that runs a module with them, itself or by a function of the program."""
    if program.names(file).qualified(call.func) in FUNCTIONAL_CALLS:
        return [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "parameter_and_buffer_dicts")]
    target = resolver_of(program).function_of(call, Value(call, file)) if depth < _DEPTH else None
    if target is None:
        return []
    where, function = target
    inner = (one for each in function.body for one in walk(each) if isinstance(one, ast.Call))
    names = {name for one in inner for each in _given_to(one, where, program, depth + 1) if (name := dotted_name(each))}
    return [value for name, value in arguments_of(call, function) if name in names]


def _by_callers(loss: str, function: Function, file: SourceFile, program: Program, depth: int) -> set[str]:
    """The parameters of a function that get, at each call, the weights that the loss which it gets was computed with."""
    each: list[set[str]] = []
    for where, call in resolver_of(program).calls_of(function, file):
        given, statement = dict(arguments_of(call, function)), where.statement(call)
        if loss not in given or statement is None:
            return set()
        names = weights_behind(given[loss], statement, where, program, depth + 1)
        each.append({name for name, value in given.items() if dotted_name(value) in names})
    return set.intersection(*each) if each else set()
