"""The weights of a row that is masked throughout, as zeros: `torch.softmax(scores, -1).masked_fill(~mask, 0.0)`.

With a finite value in the mask such a row is uniform, and what is read by it the mean of what the mask hides.
"""

from __future__ import annotations

import ast

from explainer.fix.text.rewrite import operand, put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.mask import Fill, is_never_whole, softmax_argument
from explainer.source.name import bound_names
from explainer.source.program import Program
from explainer.source.tree import end_of, start_of, walk
from explainer.source.value.binding import scope_of


def zeros_where_hidden(fill: Fill, program: Program) -> Edit | None:
    """The edit of the one softmax that the function of a mask takes of what it has masked; None where no row can be empty."""
    file, hidden = fill.file, fill.hidden
    if hidden is None or not isinstance(fill.node, ast.Call):
        return None
    if is_never_whole(hidden, file, program, shown=fill.shown):
        return None
    softmax = _softmax(fill, program)
    if softmax is None or _is_rebound(hidden, fill.node, softmax, file):
        return None
    is_turned = isinstance(hidden, ast.UnaryOp) and isinstance(hidden.op, ast.Invert)
    turned = file.segment(hidden.operand) if is_turned else f"~{operand(file, hidden)}"  # type: ignore[attr-defined]
    text = turned if fill.shown else file.segment(hidden)
    return put_method(file, softmax, f".masked_fill({text}, 0.0)")


def _softmax(fill: Fill, program: Program) -> ast.Call | None:
    """The softmax of a masked expression, or of the one name that it is bound to."""
    file, statement = fill.file, fill.file.statement(fill.node)
    names = set(bound_names(statement)) if isinstance(statement, ast.Assign) and statement.value is fill.node else set()
    if isinstance(statement, ast.Expr) and isinstance(fill.into, ast.Name):  # scores.masked_fill_(mask, -inf)
        names = {fill.into.id}
    found = [
        one
        for one in walk(scope_of(fill.node, file))
        if isinstance(one, ast.Call) and _takes(softmax_argument(one, file, program), names, fill.node)
    ]
    called = [getattr(one.func, "attr", getattr(one.func, "id", "")) for one in found]
    return found[0] if len(found) == 1 and "log" not in called[0].lower() and called[0] != "logsumexp" else None


def _takes(argument: ast.expr | None, names: set[str], node: ast.expr) -> bool:
    if argument is node:
        return True
    return isinstance(argument, ast.Name) and argument.id in names and start_of(argument) > end_of(node)


def _is_rebound(hidden: ast.expr, start: ast.AST, end: ast.AST, file: SourceFile) -> bool:
    """Whether a name of the mask means something else by the time of the softmax."""
    used = {one.id for one in walk(hidden) if isinstance(one, ast.Name)}
    return any(
        isinstance(one, ast.stmt) and used & set(bound_names(one)) and end_of(start) < start_of(one) < start_of(end)
        for one in walk(scope_of(start, file))
    )
