"""`mse_loss(model(x), images.permute(0, 3, 1, 2))` for images with their channels last, beside predictions with theirs in front.

Only where the loss names both shapes and one is the other in that order; a reshape would scramble the pixels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from explainer.fix.clue.blame import crash_frames
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.loss.loss import find_losses

_SHAPE = re.compile(r"\d+")
_SIZES = re.compile(r"target size \(torch\.Size\(\[([\d, ]+)\]\)\).*?input size \(torch\.Size\(\[([\d, ]+)\]\)\)")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the target of the loss that named the shapes."""
    predicted, target = _shapes(context)
    if len(predicted) != 4 or len(target) != 4 or predicted == target:
        return
    batch, channels, height, width = predicted
    if target == [batch, height, width, channels]:
        method = ".permute(0, 3, 1, 2)"
    elif predicted == [target[0], target[2], target[3], target[1]]:
        method = ".permute(0, 2, 3, 1)"
    else:
        return
    for loss in find_losses(context.program):
        lines = range(loss.call.lineno, (loss.call.end_lineno or loss.call.lineno) + 1)
        if not loss.takes_classes and any(line in crash_frames(loss.file, context) for line in lines):
            yield Proposal(
                edits=(put_method(loss.file, loss.target, method),),
                culprit=culprit_of(
                    loss.file, loss.call, f"compares {predicted} with {target}: the channels stand elsewhere"
                ),
                belief=2.6,
            )


def _shapes(context: Context) -> tuple[list[int], list[int]]:
    """The shapes of prediction and target that the loss warned of, before it failed."""
    said = [one.message for one in context.incident.warnings] + [one.message for one in context.incident.exceptions]
    for text in said:
        if found := _SIZES.search(text):
            return [int(one) for one in _SHAPE.findall(found[2])], [int(one) for one in _SHAPE.findall(found[1])]
    return [], []
