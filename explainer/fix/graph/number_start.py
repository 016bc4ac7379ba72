"""A state whose entries start as numbers and are tensors from the first call on: `self.scale = {name: 1.0 for name in names}`.

A number has no `detach`, so a cut of all entries must leave it as it is; one that is made where an entry is stored meets tensors only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.graph.detachment import detached
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import all_parameters
from explainer.source.value.entry import has_graph
from explainer.source.value.lineage import before, binds, loops_of, reads, statements_of, value_of
from explainer.source.value.nesting import Nesting, nesting_of

_NUMBERS = ("float", "int")
_DEFAULTS = ("collections.defaultdict", "defaultdict")


def starts_as_numbers(name: str, owner: ast.ClassDef, file: SourceFile, program: Program) -> bool:
    """Whether the class makes an attribute a container of numbers somewhere."""
    for method in owner.body:
        if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        made = [value_of(one, name) for one in statements_of(method) if name in binds(one)]
        if any(one is not None and _holds_numbers(one, file, program) for one in made):
            return True
    return False


def _holds_numbers(value: ast.expr, file: SourceFile, program: Program) -> bool:
    if _makes_numbers(value, file, program):
        return True
    nesting = nesting_of(value, file, program)
    return nesting.is_container and nesting.element.kind == "plain"


def _makes_numbers(value: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a value is a dictionary that makes a number of a key it lacks: `defaultdict(float)`, `defaultdict(lambda: 1.0)`."""
    if not isinstance(value, ast.Call) or program.names(file).qualified(value.func) not in _DEFAULTS or not value.args:
        return False
    made = value.args[0]
    body = made.body if isinstance(made, ast.Lambda) else None
    return dotted_name(made) in _NUMBERS or (isinstance(body, ast.Constant) and isinstance(body.value, (int, float)))


def without_graphs(nesting: Nesting, expression: str) -> str | None:
    """An expression for a container of numbers and tensors with every tensor detached; None where its kind is not known."""
    part = f"part if isinstance(part, (int, float)) else {detached(nesting.element, 'part')}"
    if nesting.element.is_container:
        return None
    if nesting.kind == "dict":
        return f"{{key: {part} for key, part in {expression}.items()}}"
    return f"[{part} for part in {expression}]" if nesting.kind == "list" else None


def cut_where_stored(
    name: str, method: Function, owner: ast.ClassDef, file: SourceFile, program: Program
) -> tuple[Edit, ...]:
    """The entries that a method stores, detached there; nothing where the step goes on with one of them."""
    stored = list(_stored(name, method, file, program))
    is_whole = any(name in binds(one) for one in statements_of(method))
    is_own = all(_is_own_entry(entry, one, file) for one, entry in stored)
    if is_whole or not is_own or _is_read_afterwards(name, [one for one, _ in stored], method, owner, program):
        return ()
    return tuple(put_method(file, one.value, ".detach()") for one, _ in stored)


def stores_graph(name: str, method: Function, file: SourceFile, program: Program) -> bool:
    """Whether a method gives an entry a value that takes up a tensor with a graph."""
    return any(_stored(name, method, file, program))


def is_made_anew(name: str, method: Function, owner: ast.ClassDef) -> bool:
    """Whether a method of the class gives the attribute a new value before it calls this one, whatever it held."""
    return any(
        name in binds(one) and before(one, call) and name not in reads(one, graph=False)
        for function, call in _callers(method, owner)
        for one in function.body
    )


def keys_are_given(name: str, method: Function, file: SourceFile, program: Program) -> bool:
    """Whether the caller says which entry a call stores: many calls in a step are then for many entries."""
    keys = [dotted_name(entry.slice) for _, entry in _stored(name, method, file, program)]
    return bool(keys) and set(keys) <= all_parameters(method)


def _stored(
    name: str, method: Function, file: SourceFile, program: Program
) -> Iterator[tuple[ast.Assign, ast.Subscript]]:
    for one in statements_of(method):
        target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        if not isinstance(one, ast.Assign) or not isinstance(target, ast.Subscript):
            continue
        if dotted_name(target.value) == name and _takes_graph(one, name, file, program):
            yield one, target


def _takes_graph(statement: ast.Assign, name: str, file: SourceFile, program: Program) -> bool:
    """Whether what a statement stores takes up a tensor with a graph besides the state itself."""
    wanted = reads(statement.value) - {name}
    keys = {id(part) for one in walk(statement.value) if isinstance(one, ast.Subscript) for part in walk(one.slice)}
    parts = [one for one in walk(statement.value) if isinstance(one, (ast.Name, ast.Attribute)) and id(one) not in keys]
    taken = [one for one in parts if dotted_name(one) in wanted]
    is_live = any(has_graph(one, statement, file, program) for one in taken)
    return is_live and not nesting_of(statement.value, file, program).is_container


def _is_own_entry(entry: ast.Subscript, statement: ast.stmt, file: SourceFile) -> bool:
    """Whether each round of a loop around it stores another entry: a loop over time goes on with what it stored."""
    key = reads(entry.slice, graph=False)
    return all(isinstance(loop, ast.For) and key & binds(loop) for loop in loops_of(statement, file))


def _is_read_afterwards(
    name: str, stored: list[ast.Assign], method: Function, owner: ast.ClassDef, program: Program
) -> bool:
    """Whether the method reads an entry behind its store, another method behind its call of this one, or anything but the class."""
    marks: list[tuple[Function, ast.stmt]] = [(method, one) for one in stored]
    marks += _callers(method, owner)
    for function, mark in marks:
        if any(before(mark, one) and name in reads(one, graph=False) for one in statements_of(function)):
            return True
    attribute, inside = name.removeprefix("self."), set(walk(owner))
    return any(
        isinstance(node, ast.Attribute) and node.attr == attribute and node not in inside
        for file in program.parsed()
        for node in file.walk()
    )


def _callers(method: Function, owner: ast.ClassDef) -> Iterator[tuple[Function, ast.stmt]]:
    """The other methods of the class that call one, with the statement that does."""
    for other in owner.body:
        if isinstance(other, (ast.FunctionDef, ast.AsyncFunctionDef)) and other is not method:
            yield from ((other, one) for one in statements_of(other) if _calls(one, f"self.{method.name}"))


def _calls(statement: ast.stmt, called: str) -> bool:
    if isinstance(statement, (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.Try)):
        return False
    return any(isinstance(node, ast.Call) and dotted_name(node.func) == called for node in walk(statement))
