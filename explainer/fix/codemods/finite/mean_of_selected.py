"""The mean of what a mask selects, where it can select nothing: `x[mask].sum() / max(x[mask].numel(), 1)` for `x[mask].mean()`.

Only where a trace saw this mean make the first NaN. A batch in which nothing is selected then counts as 0.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.trace import NOT_FINITE
from explainer.source.tree import walk


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each mean of a selection in the statement that made the first NaN."""
    for file, statement in traced_places(NOT_FINITE, context):
        for call in walk(statement):
            if not isinstance(call, ast.Call) or call.args or call.keywords:
                continue
            func = call.func
            if not isinstance(func, ast.Attribute) or func.attr != "mean" or not isinstance(func.value, ast.Subscript):
                continue
            if not isinstance(func.value.slice, (ast.Name, ast.Compare, ast.Attribute, ast.BinOp, ast.UnaryOp)):
                continue
            picked = file.segment(func.value)
            quotient = f"{picked}.sum() / max({picked}.numel(), 1)"
            is_whole = isinstance(file.parents.get(call), (ast.Return, ast.Assign, ast.keyword))
            yield Proposal(
                edits=(edit_of(file, call, quotient if is_whole else f"({quotient})"),),
                culprit=culprit_of(file, call, "is the mean of nothing where the mask selects nothing: 0 / 0"),
                belief=2.0,
            )
