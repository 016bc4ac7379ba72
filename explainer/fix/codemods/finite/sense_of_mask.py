"""`key_padding_mask=~mask` for a mask that is true on the tokens: attention then hides the padding, not the text.

An inverted mask hides the whole of the longest sample, whose row of the softmax is NaN. To let such rows be finite would
train on the padding alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand
from explainer.source.data.padding import inverted_masks


def propose(context: Context) -> Iterator[Proposal]:
    """One edit of all the masks that are given in the other sense."""
    if not context.has_failed:
        return
    found = [
        (file, mask, is_shown)
        for file in context.program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Call)
        for mask, is_shown in inverted_masks(node, file, context.program)
    ]
    if found:
        file, mask, is_shown = found[0]
        senses = ("true on the tokens", "true on padding")
        has, takes = senses if is_shown else senses[::-1]
        yield Proposal(
            edits=tuple(edit_of(where, one, f"~{operand(where, one)}") for where, one, _ in found),
            culprit=culprit_of(file, mask, f"is {has}, and what it is given to takes one that is {takes}"),
            belief=2.6,
        )
