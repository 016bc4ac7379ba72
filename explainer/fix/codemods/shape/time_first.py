"""`ctc(log_probs.transpose(0, 1), ...)`: the CTC loss reads time first, then the batch, whatever `batch_first` says elsewhere.

Only where the live program had the log-probabilities and what tells the batch, and their second axis is not the batch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen_shape import seen_shape
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_REFUSED = ("input_lengths must be of size batch_size", "target_lengths must be of size batch_size", "ctc_loss")
_NAMES = ("log_probs", "targets", "input_lengths", "target_lengths")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the CTC loss on the line that raised."""
    message = message_of(context)
    if not any(one in message for one in _REFUSED):
        return
    for file, statement in list(raised_at(context))[:1]:
        for call in (one for one in walk(statement) if isinstance(one, ast.Call) and _is_ctc(one, file, context)):
            given = dict(zip(_NAMES, call.args, strict=False))
            given.update({one.arg: one.value for one in call.keywords if one.arg in _NAMES})
            if "log_probs" in given and _is_batch_first(given, file, context):
                yield Proposal(
                    edits=(put_method(file, given["log_probs"], ".transpose(0, 1)"),),
                    culprit=culprit_of(file, call, "reads time first, and gets the batch first"),
                    belief=2.5,
                )


def _is_ctc(call: ast.Call, file: SourceFile, context: Context) -> bool:
    if context.program.names(file).is_call(call, "torch.nn.functional.ctc_loss"):
        return True
    made = resolver_of(context.program).constructors_of(Value(call.func, file))
    return bool(made) and all(
        isinstance(one.node, ast.Call) and context.program.names(one.file).is_call(one.node, "torch.nn.CTCLoss")
        for one in made
    )


def _is_batch_first(given: dict[str, ast.expr], file: SourceFile, context: Context) -> bool:
    """Whether the first axis of the log-probabilities counts as many as there are targets, and the second another number."""
    scores = seen_shape(given["log_probs"], file, context)
    shapes = {name: seen_shape(node, file, context) for name, node in given.items() if name != "log_probs"}
    targets, rows = shapes.pop("targets", None), {one for one in shapes.values() if one is not None and len(one) == 1}
    batches = {one[0] for one in rows} | ({targets[0]} if targets is not None and len(targets) == 2 else set())
    return (
        scores is not None
        and len(scores) == 3
        and None not in scores
        and scores[0] in batches
        and scores[1] not in batches
    )
