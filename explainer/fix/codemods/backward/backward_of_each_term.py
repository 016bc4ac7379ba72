"""A loss that is summed up in a loop goes back by itself in each round, and the sum keeps its value: `loss.backward()`.

`total = total + loss` and `total.backward()` in one loop go back through the losses of all rounds before, whose graphs are used up.
The gradients of the rounds add up in the parameters anyway.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.name import dotted_name
from explainer.source.value.binding import bounds_of, scope_of
from explainer.source.value.lineage import before, block_of, loop_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the backward that failed, of a name to which each round of its loop adds a loss."""
    if not context.has_failed:
        return
    for file, statement in failing_statements(context)[:1]:
        call = statement.value if isinstance(statement, ast.Expr) else None
        func = call.func if isinstance(call, ast.Call) else None
        if not isinstance(func, ast.Attribute) or func.attr != "backward" or not isinstance(func.value, ast.Name):
            continue
        total, loop = func.value.id, loop_of(statement, file)
        sums = [one for one in block_of(statement, file) if before(one, statement) and _term(one, total) is not None]
        term = _term(sums[0], total) if len(sums) == 1 else None
        bound = [one for one in bounds_of(scope_of(statement, file)) if one.name == total]
        starts = [one for one in bound if one.statement not in sums]
        if loop is None or term is None or not starts or not all(_is_zero(one.node) for one in starts):
            continue
        if any(loop_of(one.statement, file) is not loop for one in bound if one.statement in sums):
            continue
        yield Proposal(
            edits=(edit_of(file, func.value, term.id), put_method(file, term, ".detach()")),
            culprit=culprit_of(
                file, statement, f"goes back through all that `{total}` has summed up in the rounds before"
            ),
            belief=2.2,
        )


def _term(statement: ast.stmt, total: str) -> ast.Name | None:
    """`loss` of `total = total + loss` and of `total += loss`."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        parts: list[ast.expr] = [statement.target, statement.value]
    elif isinstance(statement, ast.Assign) and dotted_name(statement.targets[0]) == total:
        value = statement.value
        parts = [value.left, value.right] if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) else []
    else:
        return None
    others = [one for one in parts if dotted_name(one) != total]
    is_sum = len(parts) == 2 and len(others) == 1
    return others[0] if is_sum and isinstance(others[0], ast.Name) else None


def _is_zero(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0 and not isinstance(node.value, bool)
