"""`attention(x, x, x, key_padding_mask=mask)` for `attn_mask=mask`: what hides the padding of each sample is no mask of positions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.patch import Edit
from explainer.source.tree import walk

_REFUSED = re.compile(
    r"shape of the 2D attn_mask is (?:torch\.Size)?\(\[(\d+), (\d+)\]\), but should be \((\d+), (\d+)\)"
)
_NAMES = {"attn_mask": "key_padding_mask", "mask": "src_key_padding_mask", "src_mask": "src_key_padding_mask"}


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the call that raised, where the mask has a row for each sample."""
    refused = _REFUSED.search(message_of(context))
    if refused is None or refused[2] != refused[4] or refused[1] == refused[3]:
        return
    for file, statement in list(raised_at(context))[:1]:
        for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
            given = [one for one in call.args if seen(one, context) is not None]
            shapes = [tensor.shape for one in given if (tensor := seen(one, context)) is not None]
            for keyword in call.keywords:
                name = keyword.arg or ""
                if name in _NAMES and any(int(refused[1]) in shape[:2] for shape in shapes):
                    start = file.span(keyword)[0]
                    yield Proposal(
                        edits=(Edit(file=file.path, start=start, end=start + len(name), new=_NAMES[name]),),
                        culprit=culprit_of(
                            file, keyword.value, "has a row for each sample: it says which steps are padding"
                        ),
                        belief=2.2,
                    )
