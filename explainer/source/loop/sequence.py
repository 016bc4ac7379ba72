"""What a training step does in order, through the functions that it calls: its backwards, and whose optimizer steps behind each.

`self.forward()`, `self.backward_D()`, `self.opt_D.step()`, `self.backward_G()`, as in pix2pix: the backwards stand in methods and
what their losses read in attributes. A value has one name for all of them, that of the function in which it is a local one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward, find_backwards, stepped
from explainer.source.loop.ownership import classes_named, owned_by
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import end_of
from explainer.source.value.binding import Value, all_parameters, walk_scope
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import definitions, reads, sources
from explainer.source.value.resolve import resolver_of

_DEPTH = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frame:
    """One run of a function: the call that runs it, and the run of the function around that; a file's own has neither."""

    file: SourceFile
    scope: Function | ast.Module
    call: ast.Call | None = None
    above: Frame | None = None

    @property
    def depth(self) -> int:
        """How many calls lie between the step's function and this one."""
        return 0 if self.above is None else self.above.depth + 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turn:
    """A backward, the modules that the next optimizer to step owns, and how many have stepped before it.

    The modules have the names that they have in the step's function.
    """

    frame: Frame
    backward: Backward
    owned: frozenset[str] = frozenset()
    stepped: int = 0


Named = tuple[Frame, str]
"""The function's run in which a value is local, or an attribute of its `self`, and its name there."""


@dataclass(frozen=True, slots=True)
class Read:
    """A part of a loss's computation that reads a value by some name, and the statement where that is local or an attribute."""

    frame: Frame
    node: ast.expr
    name: str
    at: ast.stmt


@dataclass(slots=True)
class Lines:
    """All that a loss is computed from: what reads which value, and the statements that do."""

    reads: dict[Named, list[Read]] = field(default_factory=dict)
    statements: set[ast.stmt] = field(default_factory=set)


def turns_of(scope: Function | ast.Module, file: SourceFile, program: Program) -> list[Turn]:
    """The backwards that a function, or a file, runs in the order of the text."""
    if not isinstance(scope, ast.Module) and scope not in _training(program):
        return []
    frame = Frame(file=file, scope=scope)
    found: list[Turn] = []
    waiting: list[Turn] = []
    steps = 0
    for one in _events(frame, program):
        if isinstance(one, Turn):
            waiting.append(replace(one, stepped=steps))
            continue
        owned = frozenset(name for name in one if name)
        found += [replace(each, owned=owned) for each in waiting]
        waiting, steps = [], steps + 1
    return found


def _events(frame: Frame, program: Program) -> Iterator[Turn | frozenset[str]]:
    """Backwards, and for each step of an optimizer the modules that it owns."""
    file = frame.file
    backwards = {one.call: one for one in find_backwards(program)}
    calls = [node for node in walk_scope(frame.scope) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=end_of):
        statement = file.statement(call)
        if call in backwards:
            yield Turn(frame=frame, backward=backwards[call])
        elif (optimizer := stepped(statement)) is not None and call is getattr(statement, "value", None):
            yield _owned(optimizer, statement, frame, program)
        elif frame.depth < _DEPTH and (found := resolver_of(program).function_of(call, Value(call.func, file))):
            where, function = found
            if function not in _scopes(frame) and function in _training(program):
                yield from _events(Frame(file=where, scope=function, call=call, above=frame), program)


def _scopes(frame: Frame | None) -> Iterator[ast.AST]:
    while frame is not None:
        yield frame.scope
        frame = frame.above


def _training(program: Program) -> frozenset[Function]:
    """The functions that go back or step, themselves or in what they call."""
    return frozenset(program.once(_find_training))


def _find_training(program: Program) -> Iterator[Function]:
    holders = [(one.file, one.call) for one in find_backwards(program)]
    for file in program.parsed():
        holders += [(file, node) for node in file.walk() if isinstance(node, ast.Expr) and stepped(node)]  # type: ignore[misc]
    todo = [(program.names(file).function_of(node), file) for file, node in holders]
    seen: set[Function] = set()
    while todo:
        function, file = todo.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        yield function
        todo += [
            (program.names(where).function_of(call), where)
            for where, call in resolver_of(program).calls_of(function, file)
        ]


def _owned(optimizer: str, at: ast.stmt, frame: Frame, program: Program) -> frozenset[str]:
    names = owned_by(optimizer, at, frame.file, program)
    return frozenset(_named(one, at, frame)[0][1] for one in names)


def _named(name: str, at: ast.stmt, frame: Frame) -> tuple[Named, ast.stmt]:
    """The run in which a value is local, its name and a statement there: through parameters, and through `self` of methods."""
    while frame.above is not None and frame.call is not None and not isinstance(frame.scope, ast.Module):
        outer = _outer(name, at, frame)
        if outer is None:
            break
        name, at, frame = outer, frame.above.file.statement(frame.call), frame.above
    return (frame, name), at


def _outer(name: str, at: ast.stmt, frame: Frame) -> str | None:
    """The name that a value has in the run around; None where it is made in this one, or is an expression there."""
    call, function = frame.call, frame.scope
    if call is None or isinstance(function, ast.Module) or any(True for _ in definitions(name, at, function)):
        return None
    root, dot, rest = name.partition(".")
    if root == "self":
        owner = dotted_name(call.func.value) if isinstance(call.func, ast.Attribute) else None
        return f"{owner}{dot}{rest}" if owner is not None else None
    given = dict(arguments_of(call, function)).get(root) if root in all_parameters(function) else None
    outer = dotted_name(given) if given is not None else None
    return f"{outer}{dot}{rest}" if outer is not None else None


def lines_of(turn: Turn, program: Program) -> Lines:
    """What the loss of a backward is computed from, in its own function and in those that hand it something."""
    found = Lines()
    seen: set[tuple[Frame, ast.expr]] = set()
    todo: list[tuple[Frame, ast.expr, ast.stmt]] = [(turn.frame, turn.backward.loss, turn.backward.statement)]
    while todo:
        frame, node, at = todo.pop()
        if (frame, node) in seen:
            continue
        seen.add((frame, node))
        for statement, value in [(at, node), *sources(node, at, frame.file, program)]:
            found.statements.add(statement)
            for name in reads(value):
                named, where = _named(name, statement, frame)
                found.reads.setdefault(named, []).append(Read(frame, value, name, where))
                todo += _handed(name, statement, frame)
    return found


def _handed(name: str, at: ast.stmt, frame: Frame) -> list[tuple[Frame, ast.expr, ast.stmt]]:
    """The argument behind a parameter, in the run around."""
    function, call, above = frame.scope, frame.call, frame.above
    if call is None or above is None or isinstance(function, ast.Module) or definitions(name, at, function):
        return []
    given = dict(arguments_of(call, function)).get(name)
    return [(above, given, above.file.statement(call))] if given is not None else []


def made_by(named: Named, at: ast.stmt, program: Program) -> list[tuple[SourceFile, ast.stmt, ast.expr, str]]:
    """The statements that give a value its name, with what they give it and the name of the object whose attribute it is.

    A local one's stand before `at`; those of an attribute anywhere in the class.
    """
    frame, name = named
    local = definitions(name, at, frame.scope)
    if local:
        return [(frame.file, one, value, "self") for one in local if (value := _given(one, name)) is not None]
    owner, _, last = name.rpartition(".")
    names = program.names(frame.file)
    own = names.class_of(frame.scope) if owner == "self" else None
    classes = [(frame.file, own)] if own is not None else classes_named(owner, at, frame.file, program)
    return [
        (where, node, value, owner)
        for where, one in classes
        for node in ast.walk(one)
        if isinstance(node, ast.stmt) and (value := _given(node, f"self.{last}")) is not None
    ]


def _given(statement: ast.stmt, name: str) -> ast.expr | None:
    """What a statement assigns to a name."""
    targets = statement.targets if isinstance(statement, ast.Assign) else ()
    return statement.value if any(dotted_name(one) == name for one in targets) else None  # type: ignore[attr-defined]
