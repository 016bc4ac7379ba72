"""Points at the calls of the operation that a message names, `aten::histogram`: it raised in a backward, far from them. No edit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.source.file import SourceFile

_NAMED = re.compile(r"(?:derivative for '?|function ')(?:aten::)?_*(\w+?)(?:_forward)?\d*(?:\W|$)")
_MAX_CALLS = 3


def propose(context: Context) -> Iterator[Proposal]:
    """The calls of that name, as a function of torch or a method, where they are few."""
    named = _NAMED.search(message_of(context))
    operation = named[1] if named else ""
    calls = [
        (file, node)
        for file in context.program.parsed()
        for node in file.walk()
        if _is_call(node, operation, file, context)
    ]
    for number, (file, node) in enumerate(calls if len(calls) <= _MAX_CALLS else ()):
        why = f"computes `{operation}`, which has no derivative"
        yield Proposal(edits=(), culprit=culprit_of(file, node, why), belief=1.2 - 0.1 * number)


def _is_call(node: ast.AST, operation: str, file: SourceFile, context: Context) -> bool:
    if not operation or not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Attribute, ast.Name)):
        return False
    owner, _, called = (context.program.names(file).qualified(node.func) or "").rpartition(".")
    is_method = isinstance(node.func, ast.Attribute) and not owner.startswith(("numpy", "math"))
    return called == operation and (is_method or owner.startswith("torch"))
