"""Where a loop puts other weights into its model for a while, between a forward and its backward, and then the trained ones back.

`with ema.applied(): val = evaluate(net)`, `val = evaluate(net, ema)`, or `ema.store()`, `ema.copy_to(net)`, `val = evaluate(net)`,
`ema.restore()`.
"""

from __future__ import annotations

import ast

from explainer.source.loop.event import Gap
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.callee import leads_to


def swap_in(gap: Gap, written: ast.stmt, program: Program) -> tuple[ast.stmt, ...]:
    """The statements of a gap, from the first that leads to a write to the one that puts back what it wrote; none where none does."""
    leading = [one for one in gap.between if _leads(one, written, gap, program)]
    if not leading:
        return ()
    first = leading[0]
    if isinstance(first, ast.Assign):
        return (first,)  # a value is computed with them
    if isinstance(first, (ast.With, ast.Try)):
        is_context = isinstance(first, ast.Try) or any(
            _leads(one.context_expr, written, gap, program) for one in first.items
        )
        return (first,) if is_context else ()
    owner = _receiver(first)
    at = gap.between.index(first)
    same = [one for one in gap.between[at + 1 :] if owner is not None and _receiver(one) == owner]
    behind = gap.between.index(same[-1]) if same else at
    before = [one for one in gap.between[:at] if owner is not None and _receiver(one) == owner]
    begin = gap.between.index(before[0]) if before else at
    return gap.between[begin : behind + 1] if behind > at else ()


def _leads(node: ast.AST, written: ast.stmt, gap: Gap, program: Program) -> bool:
    return written in set(walk(node)) or leads_to(written, node, gap.file, program)


def _receiver(statement: ast.stmt) -> str | None:
    """`ema` of the statement `ema.restore(net)`, `self.ema` of `self.ema.restore()`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    owner = dotted_name(call.func.value)
    return owner if owner != "self" else None
