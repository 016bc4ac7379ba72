"""Hands a loss back to where its backward is asked for, when a helper computes it into a name of its own.

`add(loss, ...)` that rebinds its parameter gets a `return`, and its call an assignment; a function in a function gets
`nonlocal`; a local `aux_loss` beside an initial `self.aux_loss` becomes that attribute.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import backward_roots
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import (
    Bound,
    Value,
    all_parameters,
    bind_call,
    bounds_of,
    reaching,
    scope_of,
    walk_scope,
)
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

Target = tuple[SourceFile, Function]


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each helper whose result is lost on the way to the failing backward."""
    if not context.has_failed:
        return
    provenance = provenance_of(context.program)
    for root in backward_roots(context):
        trace = provenance.trace(root)
        if trace.live or trace.chains:
            continue
        for name, node in _names(root):
            yield from _lost_results(name, node, root.file, context)
            yield from _own_names(name, node, root.file, context)
        yield from _shadowed_attributes(root, context)


def _names(root: Value) -> Iterator[tuple[str, ast.expr]]:
    """The names that the loss is made of, through the plain assignments of its own scope."""
    todo, seen = [root.node], set()
    while todo:
        for node in walk(todo.pop()):
            if isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                yield node.id, node
                todo += [one.node for one in reaching(node.id, node, root.file)]


def _lost_results(name: str, node: ast.expr, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """Calls `helper(loss, ...)` whose function rebinds the parameter that `loss` is passed as."""
    for statement in _before(node, file):
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            continue
        call = statement.value
        target = resolver_of(context.program).function_of(call, Value(call, file))
        for parameter in _passed_as(name, call, target, file) if target is not None else ():
            assert target is not None
            bound = _rebound(parameter, target, node, file, context)
            edits = _handed_back(parameter, target, bound) if bound is not None else None
            if bound is not None and edits is not None:
                yield Proposal(
                    edits=(*edits, edit_of(file, statement, f"{name} = {file.segment(statement)}")),
                    culprit=culprit_of(
                        target[0],
                        bound.statement,
                        f"binds the local name `{parameter}` anew; the caller's `{name}` stays",
                    ),
                    belief=2.5,
                )


def _before(node: ast.AST, file: SourceFile) -> Iterator[ast.stmt]:
    """The statements of the scope of a node that stand before it."""
    for one in walk_scope(scope_of(node, file)):
        if isinstance(one, ast.stmt) and one.lineno < node.lineno:  # type: ignore[attr-defined]
            yield one


def _passed_as(name: str, call: ast.Call, target: Target, file: SourceFile) -> list[str]:
    bound = bind_call(call, target[1], Value(call, file))
    return [parameter for parameter, value in bound.items() if dotted_name(value.node) == name]


def _rebound(parameter: str, target: Target, node: ast.expr, file: SourceFile, context: Context) -> Bound | None:
    """The last binding of a parameter to a value with a graph; `+=` counts where the caller's value is a number."""
    provenance = provenance_of(context.program)
    initial = [one.node for one in reaching(dotted_name(node) or "", node, file)]
    is_number = any(isinstance(one, ast.Constant) for one in initial)
    for bound in reversed(bounds_of(target[1])):
        is_new = isinstance(bound.statement, ast.Assign) or (isinstance(bound.statement, ast.AugAssign) and is_number)
        if bound.name == parameter and is_new and provenance.trace(Value(bound.node, target[0])).live:
            return bound
    return None


def _handed_back(parameter: str, target: Target, bound: Bound) -> list[Edit] | None:
    """The edit that returns the name; none needed where the function does, None where it returns something else."""
    file, function = target
    returns = [one for one in walk_scope(function) if isinstance(one, ast.Return)]
    if not returns:
        return [insert_after(file, function.body[-1], f"return {parameter}")]
    if all(dotted_name(one.value) == parameter for one in returns):
        return []
    if all(one.value is None for one in returns) and bound.statement is not None:
        edits = [edit_of(file, one, f"return {parameter}") for one in returns]
        if function.body[-1] not in returns:
            edits.append(insert_after(file, function.body[-1], f"return {parameter}"))
        return edits
    return None


def _own_names(name: str, node: ast.expr, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """A function in the same scope, or of the module, that binds a local of the name that was meant."""
    scope = scope_of(node, file)
    word = "global" if isinstance(scope, ast.Module) else "nonlocal"
    if not any(one.name == name for one in bounds_of(scope)):
        return
    provenance = provenance_of(context.program)
    called = {dotted_name(one.func) for one in walk_scope(scope) if isinstance(one, ast.Call)}
    for function in (one for one in walk_scope(scope) if isinstance(one, ast.FunctionDef)):
        if function.name not in called or name in all_parameters(function) or _is_declared(name, function):
            continue
        if any(isinstance(one, ast.Return) and one.value is not None for one in walk_scope(function)):
            continue
        live = [one for one in bounds_of(function) if one.name == name and provenance.trace(Value(one.node, file)).live]
        if live:
            first = function.body[1] if ast.get_docstring(function) and len(function.body) > 1 else function.body[0]
            yield Proposal(
                edits=(insert_before(file, first, f"{word} {name}"),),
                culprit=culprit_of(
                    file, live[0].statement, f"binds a local `{name}` of `{function.name}`; the outer one stays"
                ),
                belief=2.0,
            )


def _is_declared(name: str, function: ast.FunctionDef) -> bool:
    return any(isinstance(one, (ast.Nonlocal, ast.Global)) and name in one.names for one in walk_scope(function))


def _shadowed_attributes(root: Value, context: Context) -> Iterator[Proposal]:
    """`aux_loss = ...` in a method, never read, where the loss takes `model.aux_loss` that keeps its first value."""
    provenance = provenance_of(context.program)
    wanted = {one.attr for node in _expressions(root) for one in walk(node) if isinstance(one, ast.Attribute)}
    for file, function in context.program.functions():
        owner = context.program.names(file).class_of(function)
        for bound in bounds_of(function) if owner is not None else ():
            if bound.name not in wanted or not isinstance(bound.statement, ast.Assign) or bound.pick is not None:
                continue
            is_read = any(
                isinstance(one, ast.Name) and one.id == bound.name and isinstance(one.ctx, ast.Load)
                for one in walk_scope(function)
            )
            if not is_read and provenance.trace(Value(bound.node, file)).live:
                target = bound.statement.targets[0]
                yield Proposal(
                    edits=(edit_of(file, target, f"self.{bound.name}"),),
                    culprit=culprit_of(
                        file,
                        bound.statement,
                        f"binds a local `{bound.name}`; `self.{bound.name}` keeps its first value",
                    ),
                    belief=2.0,
                )


def _expressions(root: Value) -> list[ast.expr]:
    """The expression of the loss and those that its names are bound to."""
    return [root.node, *(one.node for name, node in _names(root) for one in reaching(name, node, root.file))]
