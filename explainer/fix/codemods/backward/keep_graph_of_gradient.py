"""`torch.autograd.grad(...)` that runs before the loss's own backward keeps the graph.

`create_graph=True` where the gradient is part of the loss (a penalty: without it the penalty trains nothing); else, where it
is only measured, `retain_graph=True`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import is_crash
from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.argument import add_keyword
from explainer.model.trace import CUT, DEAD_TERM
from explainer.source.file import SourceFile
from explainer.source.graph.cut import asks_for
from explainer.source.loop.backward import Backward, find_backwards
from explainer.source.loop.pair import graph_lines
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.flow import flow_of
from explainer.source.value.lineage import before, lineage, reads, scope_of, statements_of

_DEPTH = 3
_MEASURED = "right here: the gradient is only measured, and backward goes through the same graph after it"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each `grad` call that frees what a later backward needs, or was seen to leave a term of the loss no graph."""
    yield from _traced(context)
    if not context.has_failed:
        return
    seen: set[ast.Call] = set()
    for backward in find_backwards(context.program):
        belief = 1.5 if is_crash(backward.file, backward.call, context) else 0.5
        # What a backward of the program's own differentiates is no part of the loss that it is given.
        own = {call for _, call in _calls(backward.call, backward.file, context.program)}
        for file, call, is_part in _gradients(backward, context.program):
            if call in seen or call in own or _keeps(call):
                continue
            seen.add(call)
            # A gradient of a gradient fails in the second `grad`, before the loss's own backward.
            is_second = is_part and is_crash(file, call, context)
            yield Proposal(
                edits=(add_keyword(file, call, "create_graph=True" if is_part else "retain_graph=True"),),
                culprit=culprit_of(file, call, "frees the graph that the loss's own backward goes through"),
                belief=(1.5 if is_second else belief) + (0.3 if is_part else 0.0),
                because=None if is_part else _MEASURED,
            )


def _traced(context: Context) -> Iterator[Proposal]:
    for kind in (CUT, DEAD_TERM):
        for line, file, statement in traced_statements(kind, context):
            calls = [one for where, one in _calls(statement, file, context.program, depth=0) if where is file]
            if line.operation == "grad" and len(calls) == 1 and not asks_for(calls[0], "create_graph", value=True):
                yield Proposal(
                    edits=(add_keyword(file, calls[0], "create_graph=True"),),
                    culprit=culprit_of(file, calls[0], line.says),
                    belief=2.0,
                )


def _gradients(backward: Backward, program: Program) -> Iterator[tuple[SourceFile, ast.Call, bool]]:
    """The `grad` calls before a backward, and whether the loss is made of what they give."""
    file = backward.file
    lines = lineage(backward.loss, backward.statement, file, program)
    scope = scope_of(backward.call, file, program)
    # The loss alone of the last line: a backward of the program's own may differentiate by itself.
    for line in (*lines, backward.loss):
        for where, call in _calls(line, file, program):
            yield where, call, True
    for line in statements_of(scope) if isinstance(scope, (ast.FunctionDef, ast.Module)) else ():
        if line in lines or not before(line, backward.statement) or not isinstance(line, (ast.Assign, ast.Expr)):
            continue
        for where, call in _calls(line, file, program, depth=0):
            shared = graph_lines(call.args[0], line, file, program) if call.args else []
            is_loss = bool(call.args) and bool(reads(call.args[0]) & reads(backward.loss))
            if is_loss or any(one in lines for one in shared):
                yield where, call, False


def _calls(
    node: ast.AST, file: SourceFile, program: Program, *, depth: int = _DEPTH
) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The `torch.autograd.grad` calls in a node, and in the functions that it calls and that these call."""
    for one in walk(node):
        if not isinstance(one, ast.Call):
            continue
        if program.names(file).qualified(one.func) == "torch.autograd.grad":
            yield file, one
            continue
        target: tuple[SourceFile, Function] | None = flow_of(program).target_of(one, file) if depth else None
        if target is not None and target[1] is not program.names(file).function_of(node):
            yield from _calls(target[1], target[0], program, depth=depth - 1)


def _keeps(call: ast.Call) -> bool:
    return any(
        one.arg in ("create_graph", "retain_graph")
        and not (isinstance(one.value, ast.Constant) and not one.value.value)
        for one in call.keywords
    )
