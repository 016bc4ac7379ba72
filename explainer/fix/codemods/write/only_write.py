"""Points at the in-place writes of a program that the message of a moved tensor can mean: `out.masked_fill_(...)` for MaskedFill.

Torch names the last in-place operation on the tensor; where nothing traced it and no line shows which tensor was saved, the one
function that writes so is the place to look at. No edit.
"""

from __future__ import annotations

from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.trace import WRITE
from explainer.source.graph.write import find_writes
from explainer.source.value.binding import scope_of

_MOST = 3
# What a write into a part of a tensor, or of another one's values, is called afterwards.
_COPIES = frozenset({"Copy", "CopyBackwards", "CopySlices"})


def propose(context: Context) -> Iterator[Proposal]:
    """The lines, where they stand in one function and no trace knows better."""
    op = str(context.fields.get("op") or "")
    if not context.has_failed or not op or any(one.kind == WRITE for one in context.incident.traced):
        return
    meant = _COPIES if op in _COPIES else frozenset({op})
    found = [one for one in find_writes(context.program) if one.makes in meant and one.is_needed is not False]
    found = [one for one in found if one.is_needed] or found
    if len({scope_of(one.node, one.file) for one in found}) == 1 and len(found) <= _MOST:
        for number, write in enumerate(found):
            why = f"writes in place as the message says, and nothing elsewhere does: {op}"
            yield Proposal(edits=(), culprit=culprit_of(write.file, write.node, why), belief=0.2 - 0.1 * number)
