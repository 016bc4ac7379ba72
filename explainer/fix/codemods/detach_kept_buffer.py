"""Detaches what a module binds to a registered buffer outside of its constructor: a buffer is state, which nobody trains."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.tree import walk
from explainer.source.write import is_without_grad

_DETACHED = frozenset({"detach", "data"})
_MAKES = frozenset({"zeros", "ones", "empty", "full", "zeros_like", "ones_like", "tensor", "arange"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each `self.buffer = value` with grad mode on and a value that is not detached."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        for owner in file.walk():
            if isinstance(owner, ast.ClassDef):
                buffers = set(_buffers(owner))
                for method in owner.body if buffers else ():
                    if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                        yield from _bound(method, buffers, file, context)


def _buffers(owner: ast.ClassDef) -> Iterator[str]:
    """The names that a class registers."""
    for node in walk(owner):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "register_buffer"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


def _bound(method: ast.FunctionDef, buffers: set[str], file: SourceFile, context: Context) -> Iterator[Proposal]:
    for node in walk(method):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or is_without_grad(node, file, context.program):
            continue
        target = node.targets[0]
        is_own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
        if is_own and target.attr in buffers and not _is_plain(node.value):  # type: ignore[attr-defined]
            yield Proposal(
                edits=(put_method(file, node.value, ".detach()"),),
                culprit=culprit_of(file, node, "keeps what it is given in a buffer, with its graph"),
                belief=1.2,
            )


def _is_plain(value: ast.expr) -> bool:
    """Whether a value has no graph: detached, made anew, or a constant."""
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.Attribute):
        return value.attr in _DETACHED
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.attr in _DETACHED | _MAKES or _is_plain(value.func.value)
    return False
