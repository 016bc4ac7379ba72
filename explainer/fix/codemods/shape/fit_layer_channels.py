"""`nn.Conv2d(1, 16, 3)` becomes `nn.Conv2d(3, 16, 3)` where images of three channels reach it; so does `nn.LSTM(6, 32)`.

Only for a layer that reads data, or channels that are joined for it (`torch.cat([skip, x], dim=1)`): between two layers
either of them may be meant otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen_shape import seen_shape
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.shape.layer_input import layer_of, read_told
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the layer on the line that raised, where its first argument is the number that the message names."""
    told = read_told(message_of(context))
    if told is None or told.size is None or told.is_vector:
        return
    for file, statement in list(raised_at(context))[:1]:
        for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
            found = layer_of(call, file, told, context.program)
            first = found[1].args[0] if found is not None else None
            shape = seen_shape(call.args[0], file, context) if found is not None else None
            if (
                told.lacks_batch(shape)
                or told.lacks_flatten(shape)
                or told.stands_elsewhere(shape)
                or (shape is not None and told.lacks_features(shape))
            ):
                continue
            if found is None or not isinstance(first, ast.Constant) or first.value != told.wanted:
                continue
            given = provenance_of(context.program).trace(Value(call.args[0], file))
            if (not given.live and not given.chains) or _is_joined(Value(call.args[0], file), context.program):
                yield Proposal(
                    edits=(edit_of(found[0], first, str(told.size)),),
                    culprit=culprit_of(
                        found[0], found[1], f"is built for {told.wanted} features and gets data with {told.size}"
                    ),
                    belief=1.0,
                    applicability="unsafe",
                )


def _is_joined(value: Value, program: Program) -> bool:
    """Whether a layer gets what is joined along the channels."""
    behind = list(resolver_of(program).behind(value)) or [value]
    return (
        len(behind) == 1
        and isinstance(behind[0].node, ast.Call)
        and any(program.names(behind[0].file).is_call(behind[0].node, name) for name in ("torch.cat", "torch.concat"))
    )
