"""A loss that begins or ends as a constant zero gets a zero that hangs on the output: `logits.sum() * 0`.

`total = torch.zeros(())` before a loop that may not run, `return torch.tensor(0.0)` for a batch without targets.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import backward_roots
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import Function, bound_names
from explainer.source.value.binding import Value, all_parameters, bounds_of, walk_scope
from explainer.source.value.provenance import provenance_of

_ZEROS = ("torch.tensor", "torch.zeros", "torch.FloatTensor", "torch.as_tensor", "torch.zeros_like")
_BECAUSE = "an output that is inf or NaN makes this zero NaN"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each constant zero that a loss can be, in a function that else gives one with a graph."""
    if not context.has_failed or not all(provenance_of(context.program).trace(one).live for one in _roots(context)):
        return
    for file, function in context.program.functions():
        if not any(isinstance(one, ast.expr) and _is_zero(one, file, context) for one in walk_scope(function)):
            continue
        for zero, place in _zeros(function, file, context):
            name = _live_name(function, place, file, context)
            if name is not None:
                yield Proposal(
                    edits=(edit_of(file, zero, f"{name}.sum() * 0"),),
                    culprit=culprit_of(
                        file, zero, "is a zero without a graph, and all of the loss where nothing is added"
                    ),
                    belief=1.0,
                    because=_BECAUSE,
                )


def _roots(context: Context) -> list[Value]:
    return backward_roots(context)


def _zeros(function: Function, file: SourceFile, context: Context) -> Iterator[tuple[ast.expr, ast.stmt]]:
    """Constant tensors that a function returns beside a live value, or starts a sum with that only a loop or branch adds to."""
    provenance = provenance_of(context.program)
    returns = [one for one in walk_scope(function) if isinstance(one, ast.Return) and one.value is not None]
    parts = [(one, at, part) for one in returns for at, part in enumerate(_parts(one))]
    live = {at for _, at, part in parts if provenance.trace(Value(part, file)).live}
    for one, at, part in parts:
        if at in live and _is_zero(part, file, context):
            yield part, one
    if not live:
        return
    for bound in bounds_of(function):
        if bound.fills or not _is_zero(bound.node, file, context) or file.parents.get(bound.statement) is not function:
            continue
        later = [one for one in bounds_of(function) if one.name == bound.name and one.statement is not bound.statement]
        inside = [one for one in later if file.parents.get(one.statement) is not function]
        if later and len(inside) == len(later) and isinstance(bound.statement, ast.stmt):
            yield bound.node, bound.statement


def _parts(statement: ast.Return) -> list[ast.expr]:
    """What a function returns, side by side."""
    value = statement.value
    return list(value.elts) if isinstance(value, ast.Tuple) else [value] if value is not None else []


def _is_zero(node: ast.expr, file: SourceFile, context: Context) -> bool:
    if not isinstance(node, ast.Call) or any(one.arg == "requires_grad" for one in node.keywords):
        return False
    called = context.program.names(file).qualified(node.func) or ""
    first = node.args[0] if node.args else None
    if called in ("torch.tensor", "torch.as_tensor", "torch.FloatTensor"):
        elements = first.elts if isinstance(first, ast.List) else [first]
        return all(isinstance(one, ast.Constant) and one.value == 0 for one in elements)
    is_scalar = isinstance(first, (ast.Constant, ast.Tuple)) and ast.unparse(first) in ("()", "1", "(1,)", "0")
    return called == "torch.zeros" and is_scalar


def _live_name(function: Function, place: ast.stmt, file: SourceFile, context: Context) -> str | None:
    """A tensor with a graph that is there already: a local bound before, or a parameter."""
    provenance = provenance_of(context.program)
    before = [
        name
        for node in walk_scope(function)
        if isinstance(node, ast.Assign) and node.lineno < place.lineno and file.parents.get(node) is function
        for name in bound_names(node)
        if "." not in name and provenance.trace(Value(node.value, file)).live
    ]
    used = [one for one in walk_scope(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    parameters = all_parameters(function)
    given = [one.id for one in used if one.id in parameters and one.id not in before]
    candidates = [*before, *(name for name in given if provenance.trace(Value(_use(name, used), file)).live)]
    return candidates[0] if candidates else None


def _use(name: str, used: list[ast.Name]) -> ast.Name:
    return next(one for one in used if one.id == name)
