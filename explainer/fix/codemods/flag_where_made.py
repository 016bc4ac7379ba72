"""`pos = torch.cat(parts).requires_grad_()`: the flag is set where a tensor is made, before anything is computed from it.

Only where a trace saw that something was computed from it before, and that one assignment makes it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.rewrite import put_method
from explainer.fix.trace import traced_statements
from explainer.model.trace import EARLY, MADE
from explainer.source.tree import walk


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the line that makes what a gradient is asked for; the line that reads it too early is guilty."""
    early = next(iter(traced_statements(EARLY, context)), None)
    for line, file, statement in traced_statements(MADE, context):
        if early is None or not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        if any(isinstance(one, ast.Attribute) and one.attr == "requires_grad_" for one in walk(statement)):
            continue
        yield Proposal(
            edits=(put_method(file, statement.value, ".requires_grad_()"),),
            culprit=culprit_of(early[1], early[2], early[0].says),
            belief=2.2 if line.operation in ast.unparse(statement.value) else 1.2,
        )
