"""`zero_grad` between a backward and its step moves before the backward: behind it, it throws away what the step needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before, lines_of, remove_statement
from explainer.source.backward import cleared, find_backwards, stepped
from explainer.source.lineage import block_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each block in which gradients are made, cleared, and stepped with in that order."""
    if not context.has_failed:
        return
    for backward in find_backwards(context.program):
        file = backward.file
        behind = _behind(backward.statement, block_of(backward.statement, file))
        steps = [number for number, one in enumerate(behind) if stepped(one)]
        clears = [one for one in behind[: steps[0]] if cleared(one)] if steps else []
        if clears:
            text = "\n".join(lines_of(file, one) for one in clears)
            yield Proposal(
                edits=(insert_before(file, backward.statement, text), *(remove_statement(file, one) for one in clears)),
                culprit=culprit_of(file, clears[0], "throws the gradients away between their backward and the step"),
                belief=2.5,
            )


def _behind(statement: ast.stmt, block: object) -> list[ast.stmt]:
    statements = list(block) if isinstance(block, (list, tuple)) else []
    return statements[statements.index(statement) + 1 :] if statement in statements else []
