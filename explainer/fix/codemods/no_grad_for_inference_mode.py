"""`torch.inference_mode()` becomes `torch.no_grad()` where training uses again what the block makes or keeps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.crash import crash_places
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.flow import flow_of
from explainer.source.value.lineage import binds, changes, reads, statements_of

_MODE = "torch.inference_mode"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each use of inference mode, and one for all of them where there are several."""
    if not context.has_failed:
        return
    found = [(file, node) for file in context.program.parsed() for node in inference_modes(file, context.program)]
    ranked = sorted(found, key=lambda one: -_belief(one[0], one[1], context))
    for file, node in ranked:
        yield Proposal(
            edits=tuple(without_inference(file, node)),
            culprit=culprit_of(file, node, "makes inference tensors, which no later training step may use"),
            belief=_belief(file, node, context),
        )
    if len(ranked) > 1:
        file, node = ranked[0]
        yield Proposal(
            edits=tuple(edit for each in ranked for edit in without_inference(*each)),
            culprit=culprit_of(file, node, "makes inference tensors, which no later training step may use"),
            belief=_belief(file, node, context) - 0.1,
        )


def inference_modes(file: SourceFile, program: Program) -> Iterator[ast.expr]:
    """`torch.inference_mode`, as a context or decorator, unless it is switched off by its argument."""
    names = program.names(file)
    for node in file.walk():
        items: list[ast.expr] = []
        if isinstance(node, ast.With):
            items = [item.context_expr for item in node.items]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            items = node.decorator_list
        for one in items:
            func = one.func if isinstance(one, ast.Call) else one
            if names.qualified(func) == _MODE and not (isinstance(one, ast.Call) and one.args):
                yield func


def without_inference(file: SourceFile, node: ast.expr) -> Iterator[Edit]:
    """The edits that write `torch.no_grad` for a use of inference mode: the name in place; imported by name, `torch.no_grad` is reached through an import beside it."""
    if isinstance(node, ast.Attribute):
        _start, end = file.span(node)
        yield Edit(file=file.path, start=end - len(node.attr), end=end, new="no_grad")
        return
    yield edit_of(file, node, "no_grad")
    for one in file.walk():
        if isinstance(one, ast.ImportFrom) and one.module == "torch":
            if any(alias.name == "no_grad" for alias in one.names):
                return
            for alias in one.names:
                if alias.name == "inference_mode" and alias.asname is None:
                    yield edit_of(file, alias, "no_grad")


def _belief(file: SourceFile, node: ast.expr, context: Context) -> float:
    """More where the failing line reads a name that the block binds, or the block runs a module that keeps something."""
    holder = file.parents.get(node)
    while holder is not None and not isinstance(holder, (ast.With, ast.FunctionDef, ast.AsyncFunctionDef)):
        holder = file.parents.get(holder)
    made = (
        {name for one in walk(holder) if isinstance(one, ast.stmt) for name in binds(one) | changes(one)}
        if holder
        else set()
    )
    if isinstance(holder, (ast.FunctionDef, ast.AsyncFunctionDef)):
        made = _received(holder, file, context.program)
    for where, statement in crash_places(context):
        if where is file and reads(statement, graph=False) & made:
            return 2.0
    return 1.0 if made else 0.5


def _received(function: Function, file: SourceFile, program: Program) -> set[str]:
    """The names that get what the function returns."""
    flow = flow_of(program)
    scopes = [file.tree, *program.names(file).functions]
    found: set[str] = set()
    for scope in scopes:
        for one in statements_of(scope) if scope is not None else ():
            calls = [node for node in walk(one) if isinstance(node, ast.Call)] if isinstance(one, ast.Assign) else []
            if any((target := flow.target_of(call, file)) and target[1] is function for call in calls):
                found |= binds(one)
            if any((dotted_name(call.func) or "").rpartition(".")[2] == function.name for call in calls):
                found |= binds(one)
    return found
