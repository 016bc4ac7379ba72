"""`key_padding_mask=~mask` for a mask that is true on the tokens: attention then hides the padding, not the text.

An inverted mask hides the whole of the longest sample, whose row of the softmax is NaN. To let such rows be finite would
train on the padding alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.rewrite import operand
from explainer.source.data.padding import shows_tokens
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.value.binding import Value

_HIDE = frozenset({"key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask"})
_LOW = re.compile(r"-\s*(?:float\()?[\"']?(?:math\.|torch\.|np\.)?inf|[\"']-inf|-\s*1e\d|finfo")
_FUSED = "torch.nn.functional.scaled_dot_product_attention"


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


def inverted_masks(call: ast.Call, file: SourceFile, program: Program) -> Iterator[tuple[ast.expr, bool]]:
    """The masks of a call that mean the reverse of what it takes, and whether they are true on the tokens."""
    is_fused = program.names(file).is_call(call, _FUSED)
    masks = [one.value for one in call.keywords if one.arg in _HIDE or (is_fused and one.arg == "attn_mask")]
    is_filled = isinstance(call.func, ast.Attribute) and call.func.attr in ("masked_fill", "masked_fill_")
    if is_filled and len(call.args) == 2 and _LOW.search(file.segment(call.args[1])):
        masks.append(call.args[0])
    for one in masks:
        is_shown = shows_tokens(Value(one, file), program)
        if is_shown is not None and is_shown != is_fused:
            yield one, is_shown
