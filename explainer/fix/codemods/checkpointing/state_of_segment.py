"""Points at what a checkpointed segment keeps on its module from pass to pass. No edit: who owns the state is a decision.

`self.memory = torch.cat([self.memory, x])` in the forward of a layer that is checkpointed: the replay reads what the first
pass, or a later call, has left there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.trace import PARTED
from explainer.source.name import Function, dotted_name
from explainer.source.value.binding import walk_scope

_ENTRIES = ("forward", "__call__")
_WHY = "changes `{name}`, which the segment reads: the replay in backward finds another value than the first pass"


def propose(context: Context) -> Iterator[Proposal]:
    """The line of each module's forward that changes what the same forward reads."""
    if not context.has_failed:
        return
    parted = [
        context.program.names(file).class_of(statement) for _, file, statement in traced_statements(PARTED, context)
    ]
    for file, function in context.program.functions():
        owner = context.program.names(file).class_of(function)
        if owner is None or function.name not in _ENTRIES:
            continue
        read = {name for node in walk_scope(function) if (name := _read(node)) is not None}
        for node in walk_scope(function):
            name = _changed(node, owner)
            if name is not None and name in read:
                why = _WHY.format(name=f"self.{name}")
                yield Proposal(edits=(), culprit=culprit_of(file, node, why), belief=3.5 if owner in parted else 0.5)
                break


def _read(node: ast.AST) -> str | None:
    """`name` of a `self.name` that is read."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return None
    return node.attr if isinstance(node.value, ast.Name) and node.value.id == "self" else None


def _changed(node: ast.AST, owner: ast.ClassDef) -> str | None:
    """The attribute that a node changes, itself or through a method of the same class; not where it is emptied."""
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        return _bound(node)
    method = _read(node.func) if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and method is None:
        grown = dotted_name(node.func.value) or ""
        grows = node.func.attr in ("append", "extend", "appendleft", "add", "update", "setdefault")
        return grown.removeprefix("self.") if grows and grown.startswith("self.") and grown.count(".") == 1 else None
    for one in owner.body if method else ():
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name == method:
            return next((name for inner in _statements(one) if (name := _bound(inner)) is not None), None)
    return None


def _statements(function: Function) -> Iterator[ast.Assign | ast.AugAssign]:
    yield from (one for one in walk_scope(function) if isinstance(one, (ast.Assign, ast.AugAssign)))


def _bound(statement: ast.Assign | ast.AugAssign) -> str | None:
    """The attribute of self that a statement gives a new value or a new entry; None for constants."""
    if isinstance(statement.value, ast.Constant) and not isinstance(statement, ast.AugAssign):
        return None
    target = statement.target if isinstance(statement, ast.AugAssign) else statement.targets[0]
    while isinstance(target, ast.Subscript):
        target = target.value
    name = dotted_name(target) or ""
    return name.removeprefix("self.") if name.startswith("self.") and name.count(".") == 1 else None
