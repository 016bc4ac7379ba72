"""`pad_sequence(rows)` becomes `pad_sequence(rows, batch_first=True)` where the loss counted time steps for samples.

Only where the live program shows it: a padded tensor has as many columns as there are labels, and as many rows as the loss
took for samples.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.crash import message_of
from explainer.fix.rewrite import add_argument
from explainer.fix.seen import seen_tensors

_BATCHES = re.compile(r"Expected input batch_size \((\d+)\) to match target batch_size \((\d+)\)")
_PAD = "torch.nn.utils.rnn.pad_sequence"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all padding of a program that puts time first."""
    found = _BATCHES.search(message_of(context))
    if found is None:
        return
    time, batch = int(found[1]), int(found[2])
    is_seen = any(one.shape[:2] == (time, batch) for one in seen_tensors(context).values() if len(one.shape) > 1)
    if not is_seen:
        return
    for file in context.program.parsed():
        calls = [
            node
            for node in file.walk()
            if isinstance(node, ast.Call)
            and context.program.names(file).is_call(node, _PAD)
            and len(node.args) == 1
            and not any(one.arg in ("batch_first", None) for one in node.keywords)
        ]
        if calls:
            yield Proposal(
                edits=tuple(add_argument(file, one, "batch_first=True") for one in calls),
                culprit=culprit_of(file, calls[0], "puts time first, where the loss looks for samples"),
                belief=2.0,
            )
