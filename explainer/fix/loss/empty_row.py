"""The weights of a row that is masked throughout, as zeros: `torch.softmax(scores, -1).masked_fill(~mask, 0.0)`.

With a finite value in the mask such a row is uniform, and what is read by it the mean of what the mask hides. Where the mask is made
by itself and added to the scores, `torch.softmax(scores + bias, -1).masked_fill(bias <= -1e9, 0.0)`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from explainer.fix.text.rewrite import operand, put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.mask import Fill, is_never_whole, kept_by, parts_of, softmax_argument
from explainer.source.name import bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import end_of, start_of, walk
from explainer.source.value.binding import Value, scope_of


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


def zeros_where_added(fill: Fill, masks: Collection[ast.AST], least: str, program: Program) -> Edit | None:
    """The edit of the one softmax of a sum with a mask that is made by itself, of the nodes `masks`, with `least` where it hides."""
    if fill.hidden is None or is_never_whole(fill.hidden, fill.file, program, shown=fill.shown):
        return None
    found = [
        (file, node, added)
        for file in program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Call) and (argument := softmax_argument(node, file, program)) is not None
        for added in _added(argument, node, file)
        if not set(masks).isdisjoint(parts_of(Value(added, file), program))
    ]
    if len(found) != 1:
        return None
    file, softmax, added = found[0]
    if not _is_of_weights(softmax) or _is_rebound(added, added, softmax, file):
        return None
    return put_method(file, softmax, f".masked_fill({file.segment(added)} <= {least}, 0.0)")


def _added(argument: ast.expr, softmax: ast.Call, file: SourceFile) -> Iterator[ast.expr]:
    """What is added, by name, to the argument of a softmax: where it is written, or where its name is bound."""
    todo: list[ast.AST] = [argument]
    if isinstance(argument, ast.Name):
        for one in walk(scope_of(softmax, file)):
            if not isinstance(one, (ast.Assign, ast.AugAssign)) or argument.id not in bound_names(one):
                continue
            if start_of(one) < start_of(softmax):
                todo.append(one.value)
                if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add) and _is_name(one.value):
                    yield one.value
    for one in todo:
        sums = [each for each in walk(one) if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Add)]
        yield from (side for each in sums for side in (each.left, each.right) if _is_name(side))


def _is_name(node: ast.expr) -> bool:
    """Whether an expression is a name, or a view of one: `bias`, `bias[:, None]`, `bias.unsqueeze(1)`."""
    while isinstance(node, ast.Subscript) or kept_by(node) is not None:
        node = node.value if isinstance(node, ast.Subscript) else kept_by(node) or node
    return dotted_name(node) is not None


def _is_of_weights(softmax: ast.Call) -> bool:
    called = getattr(softmax.func, "attr", getattr(softmax.func, "id", ""))
    return "log" not in called.lower()


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
    return found[0] if len(found) == 1 and _is_of_weights(found[0]) else None


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
