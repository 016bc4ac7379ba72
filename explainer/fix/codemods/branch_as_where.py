"""Under `vmap`, a branch on a tensor's value becomes `torch.where(condition, a, b)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.crash import crash_places
from explainer.source.tree import walk

_BOTH = "both branches are computed; a branch that is not finite where it is not taken still spoils the gradient"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the conditional expression on the line that raised."""
    if not context.has_failed:
        return
    for file, statement in crash_places(context):
        for node in walk(statement):
            if isinstance(node, ast.IfExp) and isinstance(node.test, ast.Compare):
                parts = ", ".join(file.segment(one) for one in (node.test, node.body, node.orelse))
                yield Proposal(
                    edits=(edit_of(file, node, f"torch.where({parts})"),),
                    culprit=culprit_of(file, node, "branches on the value of a tensor, which `vmap` does not know"),
                    belief=1.5,
                    because=_BOTH,
                )
        return
