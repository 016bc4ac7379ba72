"""`h.transpose(1, 2).reshape(n, -1)` for `.view(n, -1)`: what a transposition left out of order has no view of that shape."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.crash import message_of, raised_at
from explainer.model.patch import Edit
from explainer.source.tree import walk

_REFUSED = "view size is not compatible with input tensor's size and stride"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for the views of the line that raised."""
    if _REFUSED not in message_of(context):
        return
    for file, statement in list(raised_at(context))[:1]:
        views = [
            one.func
            for one in walk(statement)
            if isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr == "view"
            and one.args
        ]
        ends = [file.span(one)[1] for one in views]
        if views:
            yield Proposal(
                edits=tuple(Edit(file=file.path, start=end - len("view"), end=end, new="reshape") for end in ends),
                culprit=culprit_of(file, views[0], "asks for a view of values that do not lie in that order"),
                belief=2.0,
            )
