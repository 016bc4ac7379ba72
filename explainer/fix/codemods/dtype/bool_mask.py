"""A mask of zeros and ones for fused attention becomes one of `True` and `False`: `attn_mask=mask.bool()`.

Not one that is added to the scores (`(1 - mask) * -10000`), for which `True` would mean the reverse.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.tree import walk

_REFUSED = re.compile(
    r"Expected attn_mask dtype to be bool .*attn_mask\.dtype: (?:long int|int|unsigned char|signed char)"
)
_CALL = "torch.nn.functional.scaled_dot_product_attention"
_ADDED = re.compile(r"-\s*(?:\d{3,}|\d+\.|\d*e\d|float|math\.inf|torch\.inf)|finfo|iinfo")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the mask of the failing call."""
    if not _REFUSED.search(message_of(context)):
        return
    for file, statement in failing_statements(context)[:1]:
        names = context.program.names(file)
        for call in walk(statement):
            if not isinstance(call, ast.Call) or not names.is_call(call, _CALL):
                continue
            masks = [one.value for one in call.keywords if one.arg == "attn_mask"] or call.args[3:4]
            if masks and not _is_added_somewhere(context):
                yield Proposal(
                    edits=(put_method(file, masks[0], ".bool()"),),
                    culprit=culprit_of(
                        file, call, "is given a mask of integers, and takes one of bool or of the query's dtype"
                    ),
                    belief=2.0,
                )


def _is_added_somewhere(context: Context) -> bool:
    """Whether a line of the program speaks of a mask and of a large negative number."""
    lines = (line for file in context.program.parsed() for line in file.text.splitlines())
    return any("mask" in line.lower() and _ADDED.search(line) for line in lines)
