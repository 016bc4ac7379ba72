"""A default that a function fills is made anew in each call: `terms=None`, `terms = [] if terms is None else terms`.

Python makes a default once. A list of loss terms that is one still holds those of every step before, with their graphs. Where the
function takes up an entry, `state["h"]`, the default may keep a state from call to call on purpose: it stays.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.tree import walk

_FILLS = frozenset({"append", "extend", "insert", "add", "update", "setdefault", "appendleft"})
_TAKES = frozenset({"get", "pop", "popitem", "popleft", "setdefault"})
_EMPTY = {"list": "[]", "dict": "{}"}


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each parameter whose default is an empty list or dictionary that the function fills."""
    if not context.has_failed:
        return
    for file, function in context.program.functions():
        for name, default in _defaults(function):
            made = _made(default, file)
            if made is None or not _is_filled(name, function) or _is_taken_up(name, function):
                continue
            first = function.body[1] if ast.get_docstring(function) and len(function.body) > 1 else function.body[0]
            why = f"is made once, so that `{name}` still holds what earlier steps put into it"
            yield Proposal(
                edits=(
                    edit_of(file, default, "None"),
                    insert_before(file, first, f"{name} = {made} if {name} is None else {name}"),
                ),
                culprit=culprit_of(file, default, why),
                belief=2.4,
            )


def _defaults(function: Function) -> Iterator[tuple[str, ast.expr]]:
    arguments = function.args
    given = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(reversed(given), reversed(arguments.defaults), strict=False)]
    pairs += [
        (one, value)
        for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if value is not None
    ]
    yield from ((one.arg, value) for one, value in pairs)


def _made(default: ast.expr, file: SourceFile) -> str | None:
    """The text that makes an empty container; None for any other default."""
    if isinstance(default, ast.Call) and not default.args and not default.keywords:
        return _EMPTY.get(dotted_name(default.func) or "")
    is_empty = (isinstance(default, ast.List) and not default.elts) or (
        isinstance(default, ast.Dict) and not default.keys
    )
    return file.segment(default) if is_empty else None


def _is_taken_up(name: str, function: Function) -> bool:
    """Whether the function reads an entry of what earlier calls have left: a state, a table of what is known."""
    for node in walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and dotted_name(node.value) == name:
            return True
        if isinstance(node, ast.Attribute) and node.attr in _TAKES and dotted_name(node.value) == name:
            return True
        if isinstance(node, ast.Compare) and name in {dotted_name(one) for one in node.comparators}:
            return True
    return False


def _is_filled(name: str, function: Function) -> bool:
    """Whether the function itself puts something into the default."""
    for node in walk(function):
        target: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
            target = node.func.value
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            target = node.value
        elif isinstance(node, ast.AugAssign):
            target = node.target
        if target is not None and dotted_name(target) == name:
            return True
    return False
