"""A callback that changes weights listens to the event after the step, instead of one between a forward and its backward.

The event is written where the callback gets it: in a configuration file, in the call that makes or registers it, in its
class, or as the name of its method. Only for the callback whose write a trace saw, and where the loop has such an event.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of
from explainer.fix.setting_edit import rename_key, set_value
from explainer.fix.trace import traced_places
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.model.trace import WRITE
from explainer.source.callee import leads_to
from explainer.source.event import Event, event_of, find_gaps, later_event
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.setting import Setting
from explainer.source.tree import walk

_LATER = "the weights change after the step instead of before the backward: once more after the last step, not before the first"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listener:
    """The function that wrote the weights, its class, and the names under which a program may speak of them."""

    file: SourceFile
    function: Function
    owner: ast.ClassDef | None
    names: frozenset[str]


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each place that tells the writing callback its event."""
    if not context.has_failed:
        return
    program = context.program
    for file, statement in traced_places(WRITE, context):
        for gap in find_gaps(program):
            for one in gap.between:
                event = event_of(one)
                later = later_event(event, gap) if event is not None else None
                if event is None or later is None:
                    continue
                place = f"{os.path.basename(gap.file.path)}:{one.lineno}"
                for listener in _listeners(file, statement, event, program):
                    for edit, culprit, belief in _subscriptions(event, later, listener, place, program):
                        yield Proposal(
                            edits=(edit,),
                            culprit=culprit,
                            belief=belief,
                            applicability="unsafe",
                            because=_LATER,
                            title=f"Run the callback at `{later.name}`, behind the step, instead of `{event.name}`",
                        )


def _listeners(file: SourceFile, statement: ast.stmt, event: Event, program: Program) -> Iterator[_Listener]:
    """What wrote, and each callback whose method for the event leads to the write: an evaluation that swaps weights."""
    own = _listener(file, statement, program)
    if own is not None:
        yield own
    for where in program.parsed():
        for owner in program.names(where).classes.values():
            method = _method(owner, event.name) or _method(owner, "__call__")
            if method is None or (own is not None and owner is own.owner):
                continue
            if leads_to(statement, method, where, program):
                names = frozenset({owner.name} | set(_registered({owner.name}, program)))
                yield _Listener(file=where, function=method, owner=owner, names=names)


def _listener(file: SourceFile, statement: ast.stmt, program: Program) -> _Listener | None:
    names = program.names(file)
    function, owner = names.function_of(statement), names.class_of(statement)
    if function is None:
        return None
    own = {owner.name} if owner is not None else {function.name}
    return _Listener(file=file, function=function, owner=owner, names=frozenset(own | set(_registered(own, program))))


def _registered(own: set[str], program: Program) -> Iterator[str]:
    """The keys under which a dictionary, or a decorator with one word, knows a class or function."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str) and _last(value) in own:
                        yield key.value
            elif isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name in own:
                for one in node.decorator_list:
                    words = one.args if isinstance(one, ast.Call) else []
                    yield from (str(word.value) for word in words if isinstance(word, ast.Constant))


def _last(node: ast.AST | None) -> str:
    return (dotted_name(node) or "").rpartition(".")[2]


def _subscriptions(
    event: Event, later: Event, listener: _Listener, place: str, program: Program
) -> Iterator[tuple[Edit, Culprit, float]]:
    """Every edit that moves the listener to the later event, where it is written nearest first."""
    why = f"runs at `{event.name}`, which {place} calls between a forward and its backward"
    for setting, edit in _in_documents(event.name, later.name, listener, program):
        span = (setting.key[0] if setting.key else setting.span[0], setting.span[1])
        yield edit, culprit_at(setting.file, span, why), 2.4
    for file, node in _words(event, later, listener, program):
        quote = file.segment(node)[0]
        start, end = file.span(node)
        is_inside = listener.owner is not None and listener.owner in _above(node, file)
        edit = Edit(file=file.path, start=start, end=end, new=f"{quote}{later.name}{quote}")
        yield edit, culprit_of(file, node, why), 1.6 if is_inside else 2.0
    method = _method(listener.owner, event.name)
    is_free = _method(listener.owner, later.name) is None and not _is_asked_for(listener.owner, event.name, program)
    if method is not None and is_free:
        start = listener.file.text.index(event.name, listener.file.span(method)[0])
        edit = Edit(file=listener.file.path, start=start, end=start + len(event.name), new=later.name)
        yield edit, culprit_of(listener.file, method, why), 1.8


def _in_documents(old: str, new: str, listener: _Listener, program: Program) -> Iterator[tuple[Setting, Edit]]:
    """`event: after_loss` beside the callback's name, and `after_loss: [callback]`, in configuration files."""
    for document in program.documents(old):
        for one in document.settings:
            if one.value == old and _names_it(one, document.siblings(one), listener):
                edit = set_value(one, new)
            elif one.name == old and one.value in [[name] for name in listener.names] + list(listener.names):
                edit = rename_key(one, new)
            else:
                continue
            if isinstance(edit, Edit):
                yield one, edit


def _names_it(setting: Setting, siblings: list[Setting], listener: _Listener) -> bool:
    beside = {one.value.rpartition(".")[2] for one in siblings if isinstance(one.value, str) and one is not setting}
    return bool((beside | set(setting.path[-2:-1])) & listener.names)


def _words(
    event: Event, later: Event, listener: _Listener, program: Program
) -> Iterator[tuple[SourceFile, ast.Constant]]:
    """The event as a word of Python that belongs to the listener: in its class, or in a call or decorator that names it."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Constant) and node.value == event.name and node is not event.node:
                if _is_listed(node, later.name, file) or file.segment(node)[:1] not in "\"'":
                    continue
                around = _above(node, file)
                call = next((one for one in around if isinstance(one, (ast.Call, ast.FunctionDef))), None)
                if (listener.owner is not None and listener.owner in around) or _is_about(call, around, listener):
                    yield file, node


def _above(node: ast.AST, file: SourceFile) -> list[ast.AST]:
    found = []
    above = file.parents.get(node)
    while above is not None:
        found.append(above)
        above = file.parents.get(above)
    return found


def _is_listed(node: ast.Constant, other: str, file: SourceFile) -> bool:
    """Whether the word stands in a list of all events."""
    above = file.parents.get(node)
    parts = above.keys if isinstance(above, ast.Dict) else getattr(above, "elts", [])
    return any(isinstance(one, ast.Constant) and one.value == other for one in parts)


def _is_about(node: ast.AST | None, around: list[ast.AST], listener: _Listener) -> bool:
    """Whether the call that is given the word is about the listener alone: makes it, registers it, decorates it."""
    if not isinstance(node, ast.Call):
        return False
    if listener.function in around:
        return any(node in list(walk(one)) for one in listener.function.decorator_list)
    named = {_last(one) for one in walk(node) if isinstance(one, (ast.Name, ast.Attribute))}
    made = {_last(one.func) for one in walk(node) if isinstance(one, ast.Call) and _last(one.func)[:1].isupper()}
    return bool(named & listener.names) and not made - listener.names


def _is_asked_for(owner: ast.ClassDef | None, name: str, program: Program) -> bool:
    """Whether a class calls its own method by that name, or any class that of its base."""
    return any(
        isinstance(one, ast.Attribute)
        and one.attr == name
        and (isinstance(one.value, ast.Call) or (dotted_name(one.value) == "self" and owner in _above(one, file)))
        for file in program.parsed()
        for one in file.walk()
    )


def _method(owner: ast.ClassDef | None, name: str) -> Function | None:
    body = owner.body if owner is not None else []
    return next((one for one in body if isinstance(one, ast.FunctionDef) and one.name == name), None)
