"""`self.mask[: x.size(1), : x.size(1)]` for `self.mask`: a mask of each position by each is made for the longest text.

Only where a shorter text was refused, by the shapes that the live program had.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk

_REFUSED = re.compile(
    r"attn_mask is torch\.Size\(\[(?:\d+, )?(\d+), \1\]\), but should be \((?:\d+, )?(\d+), \2\)"
    r"|size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)"
    r"|expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\)"
)
_BEGINNING = "right where what comes is a beginning of what the mask is for"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each mask on the line that raised."""
    refused = _REFUSED.search(message_of(context))
    if refused is None:
        return
    short, long = sorted(int(one) for one in refused.groups() if one)
    for file, statement in list(raised_at(context))[:1]:
        read = [one for one in walk(statement) if isinstance(one, (ast.Name, ast.Attribute)) and _is_read(one)]
        masks = [one for one in read if (kept := seen(one, context)) is not None and kept.shape[-2:] == (long, long)]
        lengths = (found for one in read if one not in masks and (found := _length(one, short, file, context)))
        length = next(lengths, None)
        if not masks or length is None:
            continue
        is_kept = all((dotted_name(one) or "").startswith("self.") for one in masks)
        yield Proposal(
            edits=tuple(edit_of(file, one, f"{file.segment(one)}[..., : {length}, : {length}]") for one in masks),
            culprit=culprit_of(file, masks[0], "is made for the longest text, and this one is shorter"),
            belief=2.4,
            applicability=None if is_kept else "unsafe",
            because=None if is_kept else _BEGINNING,
        )


def _is_read(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _length(node: ast.expr, size: int, file: SourceFile, context: Context) -> str | None:
    """`x.size(1)` of a tensor with an axis of a size behind that of the batch."""
    tensor = seen(node, context)
    axes = [at for at, one in enumerate(tensor.shape) if one == size and at] if tensor is not None else []
    return f"{file.segment(node)}.size({axes[0]})" if axes else None
