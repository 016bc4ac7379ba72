"""A straight-through estimator that detaches the whole, `(h + (hard - h)).detach()`, detaches the difference: `h + (hard - h).detach()`.

Its value is `hard` either way. That one tensor is added and taken away again has no other use.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.trace import CUT, STARVING_CUT
from explainer.source.name import dotted_name
from explainer.source.tree import walk


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each traced line that cuts a sum in which one tensor cancels."""
    for kind in (STARVING_CUT, CUT):
        for _, file, statement in traced_statements(kind, context, guesses=True):
            for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
                func = call.func
                if not isinstance(func, ast.Attribute) or func.attr != "detach" or call.args or call.keywords:
                    continue
                parts = _estimator(list(_terms(func.value)))
                if parts is None:
                    continue
                soft, hard = (file.segment(one) for one in parts)
                new = f"{soft} + ({hard} - {soft}).detach()"
                stands_alone = isinstance(file.parents.get(call), (ast.Return, ast.Assign, ast.keyword, ast.Call))
                yield Proposal(
                    edits=(edit_of(file, call, new if stands_alone else f"({new})"),),
                    culprit=culprit_of(
                        file, call, f"detaches `{soft}` together with the difference that was to be detached"
                    ),
                    belief=2.5,
                )


def _terms(node: ast.expr, sign: int = 1) -> Iterator[tuple[int, ast.expr]]:
    """The terms of a sum with their signs."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from _terms(node.left, sign)
        yield from _terms(node.right, sign if isinstance(node.op, ast.Add) else -sign)
    else:
        yield sign, node


def _estimator(terms: list[tuple[int, ast.expr]]) -> tuple[ast.expr, ast.expr] | None:
    """The tensor that is added and taken away, and the one whose value is left."""
    if len(terms) != 3:
        return None
    for at, (sign, soft) in enumerate(terms):
        others = terms[:at] + terms[at + 1 :]
        away = [one for one in others if one[0] == -1 and dotted_name(one[1]) == dotted_name(soft)]
        if sign == 1 and dotted_name(soft) is not None and len(away) == 1:
            ((left, hard),) = [one for one in others if one is not away[0]]
            return (soft, hard) if left == 1 else None
    return None
