"""`attn(q, k, v, attn_mask=mask.repeat_interleave(attn.num_heads, dim=0))`: a mask of each sample is one of each head of each sample.

`nn.MultiheadAttention` counts heads fastest: `mask.repeat(heads, 1, 1)` has the shape, and gives samples the masks of others.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_SHAPE = re.compile(
    r"shape of the 3D attn_mask is (?:torch\.Size)?\(\[?(\d+), (\d+), (\d+)\]?\), but should be \((\d+), (\d+), (\d+)\)"
)
_MASKS = ("attn_mask", "mask", "src_mask", "tgt_mask")
_ATTENTION = "torch.nn.MultiheadAttention"
_PLACES = {
    _ATTENTION: 5,
    "torch.nn.TransformerEncoderLayer": 1,
    "torch.nn.TransformerEncoder": 1,
    "torch.nn.TransformerDecoderLayer": 2,
    "torch.nn.TransformerDecoder": 2,
}
"""Where a mask stands among the arguments that are not named."""


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the call that raised, where the mask has one entry for each sample."""
    found = _SHAPE.search(message_of(context))
    sizes = [int(one) for one in found.groups()] if found else []
    if not sizes or sizes[1:3] != sizes[4:] or not sizes[0] or sizes[3] % sizes[0] or sizes[3] == sizes[0]:
        return
    for file, statement in list(raised_at(context))[:1]:
        for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
            made = _constructors(call, file, context.program)
            given = [one.value for one in call.keywords if one.arg in _MASKS]
            given += [call.args[at] for one, at in _PLACES.items() if one in made and len(call.args) > at]
            if len(given) == 1 and not _is_repeated(given[0]):
                heads = f"{dotted_name(call.func)}.num_heads" if _ATTENTION in made else str(sizes[3] // sizes[0])
                yield Proposal(
                    edits=(put_method(file, given[0], f".repeat_interleave({heads}, dim=0)"),),
                    culprit=culprit_of(file, given[0], "is a mask for each sample; each head of each sample has one"),
                    belief=2.5,
                )


def _is_repeated(mask: ast.expr) -> bool:
    return isinstance(mask, ast.Call) and isinstance(mask.func, ast.Attribute) and "repeat" in mask.func.attr


def _constructors(call: ast.Call, file: SourceFile, program: Program) -> set[str]:
    """What made the module that is called: `torch.nn.MultiheadAttention` of `self.attn(...)`."""
    made = resolver_of(program).constructors_of(Value(call.func, file)) if dotted_name(call.func) else ()
    calls = [(program.names(one.file), one.node.func) for one in made if isinstance(one.node, ast.Call)]
    return {names.qualified(func) or "" for names, func in calls}
