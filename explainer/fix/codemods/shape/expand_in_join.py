"""`torch.cat([cls.expand(x.size(0), -1, -1), x], dim=1)` for `torch.cat([cls, x], dim=1)`: one token is put before each sample.

`cat` broadcasts nothing: what has a batch of one is expanded to that of the others.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.tree import walk

_REFUSED = re.compile(
    r"Sizes of tensors must match except in dimension [1-9]\d*\. Expected size (\d+) but got size (\d+)"
)
_JOINS = ("torch.cat", "torch.concat", "torch.concatenate")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each part with a batch of one on the line that raised."""
    refused = _REFUSED.search(message_of(context))
    sizes = {int(refused[1]), int(refused[2])} if refused is not None else set()
    for file, statement in list(raised_at(context))[:1] if 1 in sizes and len(sizes) == 2 else ():
        names = context.program.names(file)
        for call in (one for one in walk(statement) if isinstance(one, ast.Call) and names.is_call(one, *_JOINS)):
            parts = call.args[0].elts if call.args and isinstance(call.args[0], (ast.List, ast.Tuple)) else []
            batch = next((text for one in parts if (text := _batch(one, max(sizes), file, context)) is not None), None)
            for one in parts:
                tensor = seen(one, context)
                if batch is not None and tensor is not None and len(tensor.shape) > 1 and tensor.shape[0] == 1:
                    rest = ", ".join(["-1"] * (len(tensor.shape) - 1))
                    yield Proposal(
                        edits=(put_method(file, one, f".expand({batch}, {rest})"),),
                        culprit=culprit_of(file, one, "has a batch of one, and `cat` broadcasts nothing"),
                        belief=2.2,
                    )


def _batch(part: ast.expr, size: int, file: SourceFile, context: Context) -> str | None:
    """`x.size(0)` of a tensor in another part that has the batch."""
    for one in walk(part):
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load):
            tensor = seen(one, context)
            if tensor is not None and tensor.shape and tensor.shape[0] == size:
                return f"{file.segment(one)}.size(0)"
    return None
