"""Loops that lead a sequence through an object of a class round by round: `for x, y in chunks: model(x)`, or a comprehension of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.network.module import inherits_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bind_call, find_calls
from explainer.source.value.instance import names_of
from explainer.source.value.resolve import resolver_of

Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEPTH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """A loop, the call in it that runs the object, or leads to that, and the name that the object has there."""

    file: SourceFile
    loop: ast.For | Comprehension
    call: ast.Call
    name: str

    @property
    def statement(self) -> ast.stmt:
        """The loop itself, or the statement that holds the comprehension."""
        return self.file.statement(self.loop)

    @property
    def round(self) -> ast.stmt | None:
        """The statement of the loop's own block that runs the object; None in a comprehension."""
        if not isinstance(self.loop, ast.For):
            return None
        return next((one for one in self.loop.body if self.call in set(walk(one))), None)


def find_walks(owner: ast.ClassDef, methods: frozenset[str], program: Program) -> tuple[Walk, ...]:
    """The innermost loops that feed an object of a class, by a call of it or of one of some methods, each once."""
    found: dict[ast.AST, Walk] = {}
    for file, call in find_calls(program):
        around = program.names(file).class_of(call)
        if around is not None and inherits_module(around, file, program):
            continue  # a module's own loop over its parts or over time
        name = _name(owner, methods, call, file, program)
        for one in _above(call, name, file, program, 0) if name is not None else ():
            found.setdefault(one.loop, one)
    return tuple(found.values())


def _name(
    owner: ast.ClassDef, methods: frozenset[str], call: ast.Call, file: SourceFile, program: Program
) -> str | None:
    """The name of the object that a call runs; None for any other call."""
    called = dotted_name(call.func)
    if called is None:
        return None
    before, _, last = called.rpartition(".")
    names = names_of(owner, call, file, program)
    of_itself = [one for one in names if one == called or one.startswith(f"{called}.")]
    by_method = [one for one in names if one == before and last in methods]
    return next(iter([*of_itself, *by_method]), None)


def _above(call: ast.Call, name: str, file: SourceFile, program: Program, depth: int) -> Iterator[Walk]:
    """The innermost loop around a call that feeds it; of a helper without one, those around its calls."""
    node = file.parents.get(call)
    while node is not None and not isinstance(node, (*_FUNCTIONS, ast.Lambda, ast.ClassDef)):
        if isinstance(node, (ast.For, *_COMPREHENSIONS)) and _feeds(node, call):
            if name.partition(".")[0] not in _bound(node):
                yield Walk(file=file, loop=node, call=call, name=name)
            return
        node = file.parents.get(node)
    if isinstance(node, _FUNCTIONS) and depth < _DEPTH:
        for where, site in resolver_of(program).calls_of(node, file):
            outer = _outer(name, (node, file), (site, where))
            if outer is not None:
                yield from _above(site, outer, where, program, depth + 1)


def _outer(name: str, target: tuple[Function, SourceFile], site: tuple[ast.Call, SourceFile]) -> str | None:
    """The name that the object has where a function is called; None where that is not known."""
    (function, file), (call, where) = target, site
    root, _, rest = name.partition(".")
    if root == "self":
        return name if dotted_name(call.func) == f"self.{function.name}" else None
    if root in all_parameters(function):
        given = bind_call(call, function, Value(call, where)).get(root)
        outer = dotted_name(given.node) if given is not None else None
        return f"{outer}.{rest}" if outer and rest else outer
    return name if where is file else None


def _feeds(loop: ast.For | Comprehension, call: ast.Call) -> bool:
    """Whether what a call is given comes of the element that a loop is at."""
    known = _bound(loop)
    body = [one for each in loop.body for one in walk(each)] if isinstance(loop, ast.For) else []
    for one in body:
        if isinstance(one, ast.Assign) and known & _read(one.value):
            known |= {name for target in one.targets for name in _stored(target)}
    given = [*call.args, *(one.value for one in call.keywords)]
    return any(known & _read(one) for one in given)


def _bound(loop: ast.For | Comprehension) -> set[str]:
    targets = [loop.target] if isinstance(loop, ast.For) else [one.target for one in loop.generators]
    return {name for target in targets for name in _stored(target)}


def _stored(target: ast.AST) -> set[str]:
    return {one.id for one in walk(target) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _read(node: ast.AST) -> set[str]:
    return {one.id for one in walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
