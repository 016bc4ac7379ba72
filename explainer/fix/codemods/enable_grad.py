"""Switches grad mode on where a gradient is taken inside of somebody's `no_grad`: `with torch.enable_grad():`.

An attack or a saliency map in an evaluation; an evaluation that leaves grad mode off behind it gets the decorator instead.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before, remove_statement
from explainer.fix.failure import backward_roots, failing_statements
from explainer.fix.rewrite import in_block
from explainer.source.binding import Value, walk_scope
from explainer.source.cut import grad_mode_cut, grad_state
from explainer.source.file import SourceFile
from explainer.source.name import bound_names
from explainer.source.provenance import provenance_of
from explainer.source.tree import walk


def propose(context: Context) -> Iterator[Proposal]:
    """An edit round the computation whose gradient is asked for, and one for each switch that is left off."""
    if not context.has_failed:
        return
    provenance = provenance_of(context.program)
    if all(provenance.trace(one).live for one in backward_roots(context)):
        yield from _under_callers(context)
        yield from _left_off(context)


def _under_callers(context: Context) -> Iterator[Proposal]:
    """The innermost frame computes a loss; a frame outside of it has switched grad mode off."""
    places = failing_statements(context)
    off = [cut for file, one in places[1:] if (cut := grad_mode_cut(one, file, context.program)) is not None]
    if not off or not places:
        return
    file, failing = places[0]
    if _is_enabled(failing, file, context):
        return
    function = context.program.names(file).function_of(failing)
    above = file.parents.get(failing)
    block = getattr(above, "body", [])
    torch = next((alias for alias, target in context.program.names(file).imports.items() if target == "torch"), None)
    if function is None or torch is None or failing not in block:
        return
    statements = block[_first(block, failing, file, context) : block.index(failing) + 1]
    yield Proposal(
        edits=in_block(file, statements, f"with {torch}.enable_grad():"),
        culprit=culprit_of(
            file, statements[0], "computes what is differentiated while the caller has switched grad mode off"
        ),
        belief=2.0,
        because="the memory of these activations, during this call only",
    )


def _is_enabled(node: ast.AST, file: SourceFile, context: Context) -> bool:
    """Whether the failing statement has switched grad mode on for itself, or off."""
    names = context.program.names(file)
    above = file.parents.get(node)
    while above is not None and not isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(above, ast.With) and any(grad_state(one.context_expr, names) is not None for one in above.items):
            return True
        above = file.parents.get(above)
    decorators = getattr(above, "decorator_list", ())
    return any(grad_state(one, names) is not None for one in decorators)


def _first(block: list[ast.stmt], failing: ast.stmt, file: SourceFile, context: Context) -> int:
    """The index of the first statement of the block that runs a module for what the failing one differentiates."""
    end = block.index(failing)
    wanted = {one.id for one in walk(failing) if isinstance(one, ast.Name)}
    first = end
    for at in range(end - 1, -1, -1):
        statement = block[at]
        value = getattr(statement, "value", None)
        if not wanted & set(bound_names(statement)) or value is None:
            continue
        trace = provenance_of(context.program).trace(Value(value, file))
        runs = any(isinstance(one, ast.Call) and one in trace.sources for one in walk(statement))
        is_leaf = isinstance(value, ast.Call) and getattr(value.func, "attr", "") in ("requires_grad_", "detach")
        if trace.live and runs and not is_leaf:
            first = at
            wanted |= {one.id for one in walk(statement) if isinstance(one, ast.Name)}
    return first


def _left_off(context: Context) -> Iterator[Proposal]:
    """A function that calls `torch.set_grad_enabled(False)` and never switches it on again."""
    for file, function in context.program.functions():
        names = context.program.names(file)
        switches = [
            one
            for one in walk_scope(function)
            if isinstance(one, ast.Expr)
            and isinstance(one.value, ast.Call)
            and grad_state(one.value, names) is not None
        ]
        if len(switches) != 1 or grad_state(switches[0].value, names) is not False or _has_backward(function):
            continue
        torch = next((alias for alias, target in names.imports.items() if target == "torch"), None)
        if torch is not None:
            yield Proposal(
                edits=(remove_statement(file, switches[0]), insert_before(file, function, f"@{torch}.no_grad()")),
                culprit=culprit_of(
                    file, switches[0], "switches grad mode off for all that follows, not only for this function"
                ),
                belief=2.0,
            )


def _has_backward(function: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "backward" for one in walk_scope(function))
