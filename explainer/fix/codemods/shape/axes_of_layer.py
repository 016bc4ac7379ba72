"""`self.conv(x.transpose(1, 2))`: an input whose features stand in another axis than the layer reads them in.

Only where the live program had the input's shape, or the message says it, and just one other axis has the size that the layer
was built for. An image or a series without a channel gets one: `self.conv(x.unsqueeze(1))`; a value for each sample, or
step, becomes a column for a layer of one feature: `self.time(t.unsqueeze(-1))`; a sample of several axes becomes a row for a
linear layer that is built for all of its numbers: `self.head(x.flatten(1))`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen_shape import Shape, seen_shape
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.shape.layer_input import Told, layer_of, read_told
from explainer.fix.text.rewrite import put_method
from explainer.source.tree import walk


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the layer on the line that raised, where moving one axis of its input makes it fit."""
    told = read_told(message_of(context))
    if told is None:
        return
    for file, statement in list(raised_at(context))[:1]:
        calls = [
            one for one in walk(statement) if isinstance(one, ast.Call) and layer_of(one, file, told, context.program)
        ]
        if len(calls) != 1 or isinstance(calls[0].args[0], ast.Starred):
            return
        given = calls[0].args[0]
        known = seen_shape(given, file, context)
        method = _moved(known or told.shape, told, is_known=known is not None)
        if method is not None:
            yield Proposal(
                edits=(put_method(file, given, method),),
                culprit=culprit_of(file, calls[0], f"reads {told.wanted} features in another axis than they stand in"),
                belief=1.3,
                applicability="unsafe",
            )


def _moved(shape: Shape | None, told: Told, *, is_known: bool) -> str | None:
    """The method that brings the wanted size to the layer's axis; None where no one axis, or more than one, has it."""
    if shape is None:
        return None
    if told.is_convolution and told.wanted == 1 and is_known and told.shape == (1, *shape):
        return ".unsqueeze(1)"
    if told.lacks_flatten(shape):
        return ".flatten(1)"
    if is_known and told.lacks_features(shape):
        return ".unsqueeze(-1)"
    axis = len(shape) - 1 if told.is_last else 1
    others = [at for at, size in enumerate(shape) if size == told.wanted and at not in (0, axis)]
    if len(shape) < 3 or None in shape or len(others) != 1 or (told.got is not None and shape[axis] != told.got):
        return None
    if len(shape) == 3:
        return ".transpose(1, 2)"
    order = [at for at in range(len(shape)) if at != others[0]]
    order.insert(axis, others[0])
    return f".permute({', '.join(str(one) for one in order)})"
