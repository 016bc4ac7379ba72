"""A loss on probabilities leaves the autocast region: `with torch.autocast("cuda", enabled=False): loss = bce(p.float(), y)`.

What it is computed of stays inside: a call that makes the probabilities gets a line of its own before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import free_name, in_block, put_method, spell
from explainer.source.loss.loss import loss_at
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import scope_of

_REFUSED = ("BCELoss", "binary_cross_entropy")
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loss of the failing statement."""
    if "unsafe to autocast" not in message_of(context):
        return
    for file, statement in failing_statements(context)[:1]:
        autocast = spell(context.program.names(file), "torch.autocast")
        for call in walk(statement) if isinstance(statement, _SIMPLE) else ():
            loss = loss_at(call, file, context.program) if isinstance(call, ast.Call) else None
            if loss is None or loss.name not in _REFUSED:
                continue
            head = f'with {autocast}("cuda", enabled=False):'
            if dotted_name(loss.prediction) is not None:
                cast = put_method(file, loss.prediction, ".float()")
            else:
                name = free_name("predicted", scope_of(statement, file))
                head = f"{name} = {file.segment(loss.prediction)}\n{head}"
                cast = edit_of(file, loss.prediction, f"{name}.float()")
            moved = in_block(file, [statement], head)
            if moved:
                yield Proposal(
                    edits=(*moved, cast),
                    culprit=culprit_of(
                        file, call, "takes probabilities inside an autocast region, where they are rounded"
                    ),
                    belief=2.0,
                )
