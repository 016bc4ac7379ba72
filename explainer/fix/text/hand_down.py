"""An object of the callers that a function lacks, as one more parameter of it and one more argument of each of its calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from explainer.fix.text.rewrite import add_argument
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value, all_parameters, walk_scope
from explainer.source.value.resolve import resolver_of

_CALLERS = 2  # how many callers above a function it is looked for

Spelling = Callable[[ast.AST, SourceFile], str | None]
"""How a node's surroundings write the object; None where they do not have it."""


@dataclass(frozen=True, slots=True)
class HandedDown:
    """How a function writes the object once the edits are made."""

    name: str
    edits: tuple[Edit, ...] = ()


def hand_down(
    function: Function, file: SourceFile, spelled: Spelling, program: Program, depth: int = _CALLERS
) -> HandedDown | None:
    """The parameter and the arguments; None where a caller has no such object, or the function is more than what is called."""
    calls = _calls_of(function, file, program)
    if not calls or not depth or not _is_only_called(function, file, [call for _, call in calls], program):
        return None
    edits: list[Edit] = []
    given: list[tuple[SourceFile, ast.Call, str]] = []
    for where, call in calls:
        name = spelled(call, where)
        around = program.names(where).function_of(call)
        if name is None and around is not None:
            above = hand_down(around, where, spelled, program, depth - 1)
            name = above.name if above is not None else None
            edits += above.edits if above is not None else ()
        if name is None:
            return None
        given.append((where, call, name))
    own = given[0][2].rpartition(".")[2]
    if own in _names_of(function):
        return None
    parameter, is_by_place = _parameter(function, file, own)
    if parameter is None:
        return None
    edits.append(parameter)
    for where, call, name in given:
        is_plain = is_by_place and not call.keywords and not any(isinstance(one, ast.Starred) for one in call.args)
        edits.append(add_argument(where, call, name if is_plain else f"{own}={name}"))
    return HandedDown(own, tuple(dict.fromkeys(edits)))


def _calls_of(function: Function, file: SourceFile, program: Program) -> list[tuple[SourceFile, ast.Call]]:
    resolver = resolver_of(program)
    found = []
    for where, call in resolver.calls_of(function, file):
        run = resolver.function_of(call, Value(call, where))
        if run is not None and run[1] is function:
            found.append((where, call))
    return found


def _is_only_called(function: Function, file: SourceFile, calls: Sequence[ast.Call], program: Program) -> bool:
    """Whether nothing but these calls uses the function: no decorator, nobody who is given it."""
    if any(dotted_name(one) != "staticmethod" for one in function.decorator_list) or function.name.startswith("__"):
        return False
    known = {id(one.func) for one in calls}
    others = (
        (where, node)
        for where in program.parsed()
        for node in where.walk()
        if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in known
    )
    return not any(_may_be(node, where, function, file, program) for where, node in others)


def _may_be(
    node: ast.Name | ast.Attribute, where: SourceFile, function: Function, file: SourceFile, program: Program
) -> bool:
    """Whether an expression may be the function itself, or what overrides it."""
    if function.name != (node.id if isinstance(node, ast.Name) else node.attr):
        return False
    names = program.names(where)
    if isinstance(file.parents.get(function), ast.ClassDef):
        return isinstance(node, ast.Attribute)
    whole = f"{program.names(file).module}.{function.name}"
    return (where is file and isinstance(node, ast.Name)) or names.qualified(node) == whole


def _names_of(function: Function) -> set[str]:
    return all_parameters(function) | {one.id for one in walk_scope(function) if isinstance(one, ast.Name)}


def _parameter(function: Function, file: SourceFile, name: str) -> tuple[Edit | None, bool]:
    """The edit that adds a parameter, last, and whether it may be given by place: not behind one that has a default."""
    arguments = function.args
    given: list[ast.AST] = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *arguments.defaults]
    given += [one for one in (*arguments.kw_defaults, arguments.vararg) if one is not None]
    if not given:
        return None, False
    end = max(file.span(one)[1] for one in given)
    is_keyword = bool(arguments.vararg or arguments.kwonlyargs)
    lead = ", *, " if arguments.defaults and not is_keyword else ", "
    return Edit(file=file.path, start=end, end=end, new=f"{lead}{name}"), not (arguments.defaults or is_keyword)
