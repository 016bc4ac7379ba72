"""`cross_entropy(logits, (labels + 1) // 2)` for labels of -1 and 1, which a loss of two classes refuses.

Only where the live program had these two labels and no other, and the model two classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from explainer.fix.clue.blame import is_in_crash
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import operand, replace_whole
from explainer.source.loss.loss import find_losses

_SIGNS = "-1 to 1, 2 of them"
_TWO_CLASSES = re.compile(r"-1 of 2, from -1")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the target of the loss that failed."""
    labels, index = (context.incident.fact(f"live_refused_{name}") for name in ("labels", "index"))
    if labels is None or labels.value != _SIGNS or index is None or not _TWO_CLASSES.fullmatch(str(index.value)):
        return
    losses = [
        one for one in find_losses(context.program) if one.takes_classes and is_in_crash(one.call, one.file, context)
    ]
    for loss in losses if len(losses) == 1 else ():
        yield Proposal(
            edits=(replace_whole(loss.file, loss.target, f"({operand(loss.file, loss.target)} + 1) // 2"),),
            culprit=culprit_of(loss.file, loss.call, "takes classes from 0, and the labels are signs"),
            belief=2.6,
        )
