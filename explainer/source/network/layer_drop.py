"""Layers that a forward runs in some steps and leaves out in others: layer drop, stochastic depth, a depth that the caller gives.

Read in a module and in the modules that it is made of. What decides has to change from step to step: a number that is drawn, or an
argument of the method; a setting, or the place of a layer, does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.network.module import parts_of
from explainer.source.program import Program
from explainer.source.tree import end_of, start_of, walk
from explainer.source.value.binding import Value, all_parameters, bounds_of, calls_behind, walk_scope
from explainer.source.value.resolve import resolver_of

_DRAWS = frozenset(
    {"random", "rand", "randn", "uniform", "uniform_", "randint", "randrange", "integers", "random_sample", "bernoulli"}
    | {"bernoulli_", "binomial", "choice", "choices", "sample", "randperm", "shuffle", "getrandbits"}
)
_DEPTH = 3  # of modules in modules, and of functions that draw


def dropped_parts(owner: ast.ClassDef, file: SourceFile, program: Program, depth: int = 0) -> set[str]:
    """The attributes that hold what some steps leave out: `layers`, of the module itself or of one within it."""
    parts = set(parts_of(owner, file, program))
    found = {one for where, method in _run(owner, file, program) for one in _dropped(method, parts, where, program)}
    made = next((one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    for bound in bounds_of(made) if made is not None and depth < _DEPTH else ():
        if bound.name.removeprefix("self.") not in parts:
            continue
        for call in walk(bound.node):
            below = resolver_of(program).find_class(call.func, file) if isinstance(call, ast.Call) else None
            if below is not None and below[1] is not owner:
                found |= dropped_parts(below[1], below[0], program, depth + 1)
    return found


def _run(owner: ast.ClassDef, file: SourceFile, program: Program) -> list[tuple[SourceFile, Function]]:
    """The forward of a class and the methods of its own that it calls."""
    found: list[tuple[SourceFile, Function]] = []
    names = ["forward"]
    for name in names:
        method = resolver_of(program).method(owner, name, file)
        if method is not None:
            found.append(method)
            called = (one.func for one in walk(method[1]) if isinstance(one, ast.Call))
            own = [one.attr for one in called if isinstance(one, ast.Attribute) and _is_self(one.value)]
            names += [one for one in dict.fromkeys(own) if one not in names]
    return found


def _dropped(function: Function, parts: set[str], file: SourceFile, program: Program) -> Iterator[str]:
    bounds = bounds_of(function)
    for node in walk_scope(function):
        if not isinstance(node, (ast.If, ast.IfExp)) or not _changes(node.test, function, file, program):
            continue
        # In a loop over the layers its variable is one of them.
        loop = file.enclosing(node, ast.For) if file.enclosing(node, ast.For) in set(walk_scope(function)) else None
        elements = {
            one.name: named for one in bounds if one.statement is loop and (named := _named([one.node], parts, {}))
        }
        if isinstance(node, ast.IfExp):
            yield from _named([node.body], parts, elements) ^ _named([node.orelse], parts, elements)
            continue
        for way, other in ((node.body, node.orelse), (node.orelse, node.body)):
            last = way[-1] if way else None
            around = loop if isinstance(last, (ast.Continue, ast.Break)) else function
            if isinstance(last, (ast.Continue, ast.Break, ast.Return)) and around is not None:
                is_over = isinstance(last, ast.Break)
                after = [one for one in walk(around) if is_over or start_of(one) >= end_of(node)]
                yield from _named([*other, *after], parts, elements) - _named(way, parts, elements)
        yield from _named(node.body, parts, elements) ^ _named(node.orelse, parts, elements)


def _named(nodes: Iterable[ast.AST], parts: set[str], elements: dict[str, set[str]]) -> set[str]:
    """The parts that some nodes name, as attributes or as the variable of a loop over them."""
    found: set[str] = set()
    for node in (one for top in nodes for one in walk(top)):
        if isinstance(node, ast.Attribute) and node.attr in parts and _is_self(node.value):
            found.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found |= elements.get(node.id, set())
    return found


def _changes(test: ast.expr, function: Function, file: SourceFile, program: Program) -> bool:
    """Whether what a branch asks for is drawn, or handed to the method and more than given or not."""
    if any(_draws(one, file, program) for one in calls_behind(test, file)):
        return True
    given = all_parameters(function) - {"self"}
    return any(
        isinstance(one, ast.Name)
        and one.id in given
        and not (isinstance(above := file.parents.get(one), ast.Compare) and _is_presence(above))
        for one in walk(test)
    )


def _is_presence(node: ast.Compare) -> bool:
    return all(isinstance(one, (ast.Is, ast.IsNot)) for one in node.ops)


def _draws(call: ast.Call, file: SourceFile, program: Program, depth: int = 0) -> bool:
    if getattr(call.func, "attr", getattr(call.func, "id", "")) in _DRAWS:
        return True
    target = resolver_of(program).function_of(call, Value(call, file)) if depth < _DEPTH else None
    return target is not None and any(
        isinstance(one, ast.Call) and _draws(one, target[0], program, depth + 1) for one in walk(target[1])
    )


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
