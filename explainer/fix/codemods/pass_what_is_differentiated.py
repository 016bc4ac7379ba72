"""Runs the network on the very tensor whose gradient is asked for.

`x = points[:, :1]; u = net(points)` with a gradient by `x` becomes `net(torch.cat([x, ...], dim=1))`; where one tensor is made
of the input, it takes the input's place; adapted parameters go into `functional_call`.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.failure import failing_statements
from explainer.source.binding import Bound, bounds_of, reaching, scope_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk

_GRAD = "torch.autograd.grad"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit of the forward that reads the tensor from which the wanted one was made."""
    if not context.has_failed:
        return
    places = [
        (file, node)
        for file, statement in failing_statements(context)
        for node in walk(statement)
        if isinstance(node, ast.Call) and context.program.names(file).is_call(node, _GRAD) and len(node.args) > 1
    ]
    for file, node in places:
        yield from _pieces(node, file, context)
    for file in context.program.parsed():
        for one in file.walk():
            if isinstance(one, ast.Call) and context.program.names(file).is_call(one, _GRAD) and len(one.args) > 1:
                yield from _adapted(one, file, context)


def _forwards(output: ast.expr, file: SourceFile) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls that an output is made by, with each of their arguments."""
    todo: list[ast.AST] = [output]
    seen: set[str] = set()
    while todo:
        for node in walk(todo.pop()):
            if isinstance(node, ast.Call):
                yield from ((node, one) for one in node.args)
            elif isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                todo += [one.node for one in reaching(node.id, node, file)]


def _pieces(node: ast.Call, file: SourceFile, context: Context) -> Iterator[Proposal]:
    wanted = dotted_name(node.args[1].elts[0] if isinstance(node.args[1], (ast.Tuple, ast.List)) else node.args[1])
    scope = scope_of(node, file)
    made = [one for one in bounds_of(scope) if one.name == wanted and not one.fills]
    if wanted is None or len(made) != 1:
        return
    sources = {one.id for one in walk(made[0].node) if isinstance(one, ast.Name)}
    for call, argument in _forwards(node.args[0], file):
        source = dotted_name(argument)
        if source not in sources or call.lineno < made[0].statement.lineno:  # type: ignore[attr-defined]
            continue
        new = _joined(source, made[0], scope, file, context)
        if new is not None:
            yield Proposal(
                edits=(edit_of(file, argument, new),),
                culprit=culprit_of(
                    file, call, f"runs on `{source}`; `{wanted}` was made of it and has no part in the result"
                ),
                belief=2.0,
            )
            return


def _joined(source: str | None, made: Bound, scope: ast.AST, file: SourceFile, context: Context) -> str | None:
    """The wanted tensor in place of its source; all the pieces of it, side by side, where it is one of several."""
    if not isinstance(made.node, ast.Subscript):
        return made.name
    cuts = [
        one
        for one in bounds_of(scope)
        if isinstance(one.node, ast.Subscript) and dotted_name(one.node.value) == source and not one.fills
    ]
    torch = next((alias for alias, target in context.program.names(file).imports.items() if target == "torch"), None)
    ranges = [_columns(one.node) for one in cuts if isinstance(one.node, ast.Subscript)]
    if torch is None or not all(one is not None for one in ranges):
        return None
    ordered = sorted(zip(ranges, [one.name for one in cuts], strict=True), key=lambda one: one[0] or (0, 0))
    ends = [one[0] for one in ordered if one[0] is not None]
    is_whole = ends[0][0] == 0 and all(a[1] == b[0] for a, b in itertools.pairwise(ends))
    return f"{torch}.cat([{', '.join(name for _, name in ordered)}], dim=1)" if is_whole and len(ordered) > 1 else None


def _columns(node: ast.Subscript) -> tuple[int, int] | None:
    """The columns of `x[:, 0:1]`; the end of an open slice is far away."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    if len(parts) != 2 or not all(isinstance(one, ast.Slice) for one in parts):
        return None
    rows, columns = parts
    assert isinstance(rows, ast.Slice)
    assert isinstance(columns, ast.Slice)
    if rows.lower or rows.upper or columns.step:
        return None
    low = columns.lower.value if isinstance(columns.lower, ast.Constant) else 0 if columns.lower is None else None
    high = (
        columns.upper.value if isinstance(columns.upper, ast.Constant) else 1 << 30 if columns.upper is None else None
    )
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def _adapted(node: ast.Call, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`model(x)` in a loop that adapts `parameters`, a dictionary of the model's own, becomes `functional_call`."""
    names = context.program.names(file)
    call = next((alias for alias, target in names.imports.items() if target == "torch.func.functional_call"), None)
    values = [
        one.func.value
        for one in walk(node.args[1])
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "values"
    ]
    if call is None or not values or not isinstance(node.args[0], ast.Name):
        return
    adapted = dotted_name(values[0])
    owners = [
        owner
        for one in bounds_of(scope_of(node, file))
        if one.name == adapted and (owner := _model_of(one.node)) is not None
    ]
    if len(owners) != 1 or adapted is None:
        return
    for bound in reaching(node.args[0].id, node, file):
        for one in walk(bound.node):
            if isinstance(one, ast.Call) and dotted_name(one.func) == owners[0] and not one.keywords:
                inputs = ", ".join(file.segment(arg) for arg in one.args)
                comma = "," if len(one.args) == 1 else ""
                yield Proposal(
                    edits=(edit_of(file, one, f"{call}({owners[0]}, {adapted}, ({inputs}{comma}))"),),
                    culprit=culprit_of(file, one, f"runs with the model's own parameters, not with `{adapted}`"),
                    belief=2.0,
                )


def _model_of(node: ast.expr) -> str | None:
    """`model` of `dict(model.named_parameters())`."""
    inner = node.args[0] if isinstance(node, ast.Call) and dotted_name(node.func) == "dict" and node.args else None
    is_list = (
        isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "named_parameters"
    )
    return dotted_name(inner.func.value) if is_list else None  # type: ignore[union-attr]
