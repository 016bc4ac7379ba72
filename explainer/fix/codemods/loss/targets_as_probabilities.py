"""Points at the loss that is given targets outside of 0 to 1: pixels up to 255, inputs that were standardised, class numbers.

No edit: whether they are scaled, compared with another number, or given to another loss is the author's to say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.source.loss.loss import loss_at
from explainer.source.tree import walk

_SAID = "all elements of target should be between 0 and 1"


def propose(context: Context) -> Iterator[Proposal]:
    """The loss of the failing line."""
    if _SAID not in message_of(context):
        return
    for file, statement in crash_places(context):
        for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
            loss = loss_at(call, file, context.program)
            if loss is not None and not loss.takes_classes:
                why = f"is given `{ast.unparse(loss.target)}`, of which some are not from 0 to 1"
                yield Proposal(edits=(), culprit=culprit_of(file, loss.call, why), belief=2.0)
                return
