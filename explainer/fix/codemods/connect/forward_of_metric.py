"""A loss that is a metric of torchmetrics is what the metric gives for the batch: `self.ratio(estimate, reference)`.

`update` runs with grad mode off, since it collects values for a report; a call of the metric records a graph for its batch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.lineage import block_of
from explainer.source.value.resolve import resolver_of

_WHY = "collects what `{}` reports, with grad mode off: its `compute()` has no graph"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each `metric.compute()` behind an `update` of a batch that a network has computed."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        for node in file.walk():
            metric = _computed(node)
            if isinstance(node, ast.Call) and metric is not None and _is_metric(metric, file, context.program):
                yield from _called(node, metric, file)


def _computed(node: ast.AST) -> ast.expr | None:
    func = node.func if isinstance(node, ast.Call) and not node.args and not node.keywords else None
    return func.value if isinstance(func, ast.Attribute) and func.attr == "compute" else None


def _is_metric(node: ast.expr, file: SourceFile, program: Program) -> bool:
    made = resolver_of(program).constructors_of(Value(node, file))
    return any(
        isinstance(one.node, ast.Call)
        and (program.names(one.file).qualified(one.node.func) or "").startswith("torchmetrics.")
        for one in made
    )


def _called(compute: ast.Call, metric: ast.expr, file: SourceFile) -> Iterator[Proposal]:
    """The metric called on its batch; the `update`, and a `reset` before it, go."""
    name, statement = dotted_name(metric), file.statement(compute)
    block = list(block_of(statement, file))
    before = block[: block.index(statement)] if name is not None and statement in block else []
    of_metric = [one for one in before if _method(one, name) is not None]
    updates = [one for one in of_metric if _method(one, name) == "update"]
    if len(updates) != 1 or any(_method(one, name) not in ("update", "reset") for one in of_metric):
        return
    if isinstance(file.parents.get(compute), ast.Call) or not isinstance(statement, (ast.Return, ast.Assign)):
        return  # what is printed or logged needs no graph
    update = updates[0].value  # type: ignore[attr-defined]
    start, end = file.span(update)
    arguments = file.text[start:end][len(file.segment(update.func)) :]
    yield Proposal(
        edits=(*(remove_statement(file, one) for one in of_metric), edit_of(file, compute, f"{name}{arguments}")),
        culprit=culprit_of(file, update, _WHY.format(name)),
        belief=2.5,
    )


def _method(statement: ast.stmt, name: str | None) -> str | None:
    """The method of the metric that a statement calls for its effect."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    func = call.func if isinstance(call, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) and dotted_name(func.value) == name else None
