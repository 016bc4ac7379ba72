"""Calls the backward of what drives the training: `accelerator.backward(loss)`, `fabric.backward(loss)`, `self.manual_backward(loss)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.value.binding import Value, all_parameters, bounds_of, scope_of
from explainer.source.value.resolve import resolver_of

_DRIVERS = frozenset({"Accelerator", "Fabric"})
_NAMES = frozenset({"accelerator", "fabric"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each `loss.backward()` beside a driver that scales, shards or accumulates."""
    if not context.has_failed:
        return
    failing = {id(statement) for _, statement in failing_statements(context)}
    for file in context.program.parsed():
        for node in file.walk():
            if (
                not isinstance(node, ast.Call)
                or not isinstance(node.func, ast.Attribute)
                or node.func.attr != "backward"
            ):
                continue
            driver = _driver(node, file, context)
            loss = node.func.value
            if driver is None or dotted_name(loss) == driver or node.args:
                continue
            method = "manual_backward" if driver == "self" else "backward"
            extra = "".join(f", {file.segment(one)}" for one in node.keywords)
            yield Proposal(
                edits=(edit_of(file, node, f"{driver}.{method}({file.segment(loss)}{extra})"),),
                culprit=culprit_of(file, node, f"goes past `{driver}`, which scales and reduces the gradients"),
                belief=2.0 if id(file.statement(node)) in failing else 1.0,
            )


def _driver(node: ast.Call, file: SourceFile, context: Context) -> str | None:
    """The name of the driver that is in sight where a backward is called."""
    scope: ast.AST | None = scope_of(node, file)
    while scope is not None:
        for bound in bounds_of(scope):
            if _makes_driver(bound.node, bound.pick, file, context):
                return bound.name
        if not isinstance(scope, ast.Module):
            given = _NAMES & all_parameters(scope)  # type: ignore[arg-type]
            if given:
                return min(given)
        scope = file.enclosing(scope, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
    owner = context.program.names(file).class_of(node)
    if owner is None:
        return None
    bases = {(context.program.names(file).qualified(base) or "").rpartition(".")[2] for base in owner.bases}
    if "LightningModule" in bases:
        return "self"
    stored = next(
        (one for one in _NAMES if resolver_of(context.program).constructors_of(_attribute(one, node, file))), None
    )
    return f"self.{stored}" if stored else None


def _attribute(name: str, near: ast.AST, file: SourceFile) -> Value:
    node = ast.copy_location(ast.Attribute(value=ast.Name(id="self", ctx=ast.Load()), attr=name, ctx=ast.Load()), near)
    file.parents[node] = file.parents[near]
    return Value(node, file)


def _makes_driver(node: ast.expr, pick: int | None, file: SourceFile, context: Context) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = context.program.names(file).qualified(node.func) or ""
    return called.rpartition(".")[2] in _DRIVERS or (called == "deepspeed.initialize" and pick == 0)
