"""Gradients that a report left are cleared before the backward of the whole loss, which a trace saw add the same ones again.

    for term in terms:
        term.backward(retain_graph=True)   # leaves its gradients
    optimizer.zero_grad()                  # new
    loss.backward()

Not where micro batches add up: what is cleared there would be theirs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before, lines_of
from explainer.model.trace import AGAIN, COUNTED
from explainer.source.file import SourceFile
from explainer.source.loop.backward import cleared
from explainer.source.value.lineage import loop_of, scope_of, statements_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each backward that counts gradients again; the line that left them is the culprit."""
    early = list(traced_places(COUNTED, context))
    for file, statement in traced_places(AGAIN, context):
        clear = _cleared_before(statement, file, context)
        if clear is None or not early:
            continue
        yield Proposal(
            edits=(insert_before(file, statement, lines_of(file, clear)),),
            culprit=culprit_of(
                *early[0], f"leaves its gradients in `.grad`, where line {statement.lineno} adds the same ones"
            ),
            belief=2.0,
            because="what the step uses is then the gradient of the whole loss, once; what the report reads stays as it is",
        )


def _cleared_before(statement: ast.stmt, file: SourceFile, context: Context) -> ast.stmt | None:
    """The statement that clears gradients for this backward, in the round of the same loop."""
    scope = scope_of(statement, file, context.program)
    before = [one for one in statements_of(scope) if cleared(one) is not None] if scope is not None else []
    before = [one for one in before if one.lineno < statement.lineno]
    return before[-1] if before and loop_of(before[-1], file) is loop_of(statement, file) else None
