"""Who listens to an event of a training loop, and where a program tells them which: configuration, registration, decorator, class."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.codemod import culprit_at, culprit_of, insert_before
from explainer.fix.setting.edit import rename_key, set_value
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.event import Event
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.setting.setting import Setting
from explainer.source.tree import walk
from explainer.source.value.binding import all_parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """The function that is run, its class, and the names under which a program may speak of them."""

    file: SourceFile
    function: Function
    owner: ast.ClassDef | None
    names: frozenset[str]


def listener_at(file: SourceFile, statement: ast.stmt, program: Program) -> Listener | None:
    """The function that holds a statement, as one that listens; None outside of functions."""
    names = program.names(file)
    function, owner = names.function_of(statement), names.class_of(statement)
    if function is None:
        return None
    own = {owner.name} if owner is not None else {function.name}
    return Listener(file=file, function=function, owner=owner, names=frozenset(own | set(registered(own, program))))


def registered(own: set[str], program: Program) -> Iterator[str]:
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


def told_by_word(
    event: Event, later: Event, listener: Listener, why: str, program: Program
) -> Iterator[tuple[Edit, Culprit, float]]:
    """Every edit of a word that moves the listener to the later event, where it is written nearest first."""
    for setting, edit in _in_documents(event.name, later.name, listener, program):
        span = (setting.key[0] if setting.key else setting.span[0], setting.span[1])
        yield edit, culprit_at(setting.file, span, why), 2.4
    for file, node in _words(event, later, listener, program):
        quote = file.segment(node)[0]
        start, end = file.span(node)
        is_inside = listener.owner is not None and listener.owner in _above(node, file)
        edit = Edit(file=file.path, start=start, end=end, new=f"{quote}{later.name}{quote}")
        yield edit, culprit_of(file, node, why), 1.6 if is_inside else 2.0
    yield from _inherited(event, later, listener, why, program)


def _inherited(
    event: Event, later: Event, listener: Listener, why: str, program: Program
) -> Iterator[tuple[Edit, Culprit, float]]:
    """`event = "after_step"` in the class of the listener, which has the word of its event from a base that others share."""
    owner, file = listener.owner, listener.file
    own = _attributes(owner) if owner is not None else {}
    for base in owner.bases if owner is not None else ():
        found = program.find_class(program.names(file).qualified(base) or "")
        for name, value in _attributes(found[1]).items() if found is not None else ():
            if isinstance(value, ast.Constant) and value.value == event.name and name not in own and owner is not None:
                first = owner.body[1] if ast.get_docstring(owner) is not None and len(owner.body) > 1 else owner.body[0]
                edit = insert_before(file, first, f'{name} = "{later.name}"{file.newline}')
                yield edit, culprit_of(file, base, why), 1.7


def _attributes(owner: ast.ClassDef) -> dict[str, ast.expr]:
    """What the body of a class itself gives its attributes."""
    found: dict[str, ast.expr] = {}
    for one in owner.body:
        if isinstance(one, (ast.Assign, ast.AnnAssign)) and one.value is not None:
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            found |= {target.id: one.value for target in targets if isinstance(target, ast.Name)}
    return found


def rename_method(listener: Listener, method: ast.FunctionDef, name: str) -> Edit:
    """The edit that gives a method of the listener's another name."""
    start = listener.file.text.index(method.name, listener.file.span(method)[0])
    return Edit(file=listener.file.path, start=start, end=start + len(method.name), new=name)


def later_name(method: str, event: Event, later: Event, program: Program) -> str | None:
    """The method that the later event runs: its name, or `on_after_step` where the loop asks for `f"on_{event}"`."""
    for before, behind in (("", ""), *_spellings(program)):
        if method == f"{before}{event.name}{behind}":
            return f"{before}{later.name}{behind}"
    return None


def _spellings(program: Program) -> Iterator[tuple[str, str]]:
    for file in program.parsed():
        for node in file.walk():
            parts = node.values if isinstance(node, ast.JoinedStr) else []
            texts = [str(one.value) if isinstance(one, ast.Constant) else None for one in parts]
            if texts.count(None) == 1 and len(texts) <= 3:
                at = texts.index(None)
                yield "".join(map(str, texts[:at])), "".join(map(str, texts[at + 1 :]))


def later_parameters(
    event: Event, later: Event, method: ast.FunctionDef, listener: Listener, program: Program
) -> str | None:
    """The parameters of the later method, as the loop gives them; None where they are not known, or the body reads others."""
    name = later_name(method.name, event, later, program) or ""
    present = method_of(listener.owner, name)
    if present is None and event.call == later.call:
        return ast.unparse(method.args)
    others = [
        one
        for where in program.parsed()
        for owner in program.names(where).classes.values()
        if (one := method_of(owner, name))
    ]
    known = present or next(iter(others), None)
    if known is None:
        return None
    lost = set(all_parameters(method)) - set(all_parameters(known))
    used = {one.id for part in method.body for one in walk(part) if isinstance(one, ast.Name)}
    return ast.unparse(known.args) if not lost & used else None


def replace_parameters(method: ast.FunctionDef, given: str, file: SourceFile) -> Edit:
    """The edit that gives a method other parameters."""
    every = [one for one in walk(method.args) if isinstance(one, ast.arg)]
    start = min(file.span(one)[0] for one in every)
    return Edit(file=file.path, start=start, end=max(file.span(one)[1] for one in every), new=given)


def _in_documents(old: str, new: str, listener: Listener, program: Program) -> Iterator[tuple[Setting, Edit]]:
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


def _names_it(setting: Setting, siblings: list[Setting], listener: Listener) -> bool:
    beside = {one.value.rpartition(".")[2] for one in siblings if isinstance(one.value, str) and one is not setting}
    return bool((beside | set(setting.path[-2:-1])) & listener.names)


def _words(
    event: Event, later: Event, listener: Listener, program: Program
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


def _is_about(node: ast.AST | None, around: list[ast.AST], listener: Listener) -> bool:
    """Whether the call that is given the word is about the listener alone: makes it, registers it, decorates it."""
    if not isinstance(node, ast.Call):
        return False
    if listener.function in around:
        return any(node in list(walk(one)) for one in listener.function.decorator_list)
    named = {_last(one) for one in walk(node) if isinstance(one, (ast.Name, ast.Attribute))}
    made = {_last(one.func) for one in walk(node) if isinstance(one, ast.Call) and _last(one.func)[:1].isupper()}
    return bool(named & listener.names) and not made - listener.names


def is_asked_for(owner: ast.ClassDef | None, name: str, program: Program) -> bool:
    """Whether a class calls its own method by that name, or any class that of its base."""
    return any(
        isinstance(one, ast.Attribute)
        and one.attr == name
        and (isinstance(one.value, ast.Call) or (dotted_name(one.value) == "self" and owner in _above(one, file)))
        for file in program.parsed()
        for one in file.walk()
    )


def method_of(owner: ast.ClassDef | None, name: str) -> ast.FunctionDef | None:
    """The method that a class itself has by a name."""
    body = owner.body if owner is not None else []
    return next((one for one in body if isinstance(one, ast.FunctionDef) and one.name == name), None)
