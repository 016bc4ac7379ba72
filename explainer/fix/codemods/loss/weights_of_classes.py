"""Points at the loss whose weights are for another number of classes: `nn.BCEWithLogitsLoss(pos_weight=...)`, `weight=`.

No edit: what the missing class weighs is the author's to say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.source.loss.loss import loss_at
from explainer.source.tree import walk

_SAID = "weight tensor should be defined either for all"
_SIZES = re.compile(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)")
_CHECKED = "binary_cross_entropy_with_logits"  # it has compared prediction and target before


def propose(context: Context) -> Iterator[Proposal]:
    """The loss of the failing line that is given weights."""
    message = message_of(context)
    if _SAID not in message and not (_SIZES.search(message) and _last_function(context) == _CHECKED):
        return
    for file, statement in crash_places(context):
        for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
            loss = loss_at(call, file, context.program)
            given = [one for one in ("pos_weight", "weight") if loss is not None and one in loss.options]
            if loss is not None and given:
                where = context.program.file_of(loss.made) or file
                why = f"gives `{given[0]}` for another number of classes than the model has"
                yield Proposal(edits=(), culprit=culprit_of(where, loss.made, why), belief=2.0)
                return


def _last_function(context: Context) -> str:
    frames = [one.frames[-1] for one in context.incident.exceptions if one.frames]
    return (frames[-1].function or "") if frames else ""
