"""`ctx.save_for_backward(x, gate)` becomes `ctx.save_for_backward(x)`, and `gate` is computed anew where its backward is derived again.

Only for a Function that a trace saw derived twice: to the first derivative alone what is saved makes no difference.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.graph.resaved import resaved
from explainer.model.trace import SAVED_CONSTANT
from explainer.source.tree import walk

_WHY = "saves what the forward computes on the way: to the second derivative it is a constant"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such Function; its line alone where what is saved cannot be computed of the inputs."""
    for line, file, statement in traced_statements(SAVED_CONSTANT, context):
        # The line is that of its decorator, which stands before the method.
        owner = statement if isinstance(statement, ast.ClassDef) else file.enclosing(statement, ast.ClassDef)
        if not isinstance(owner, ast.ClassDef) or owner.name != line.operation:
            continue
        methods = {one.name: one for one in owner.body if isinstance(one, ast.FunctionDef)}
        forward, backward = methods.get("forward"), methods.get("backward")
        edits = resaved(forward, backward, file) if forward is not None and backward is not None else None
        saves = (one for one in walk(owner) if getattr(one, "attr", "") == "save_for_backward")
        culprit = culprit_of(file, file.statement(next(saves, owner)), _WHY)
        yield Proposal(edits=tuple(edits or ()), culprit=culprit, belief=2.5, is_origin=True)
