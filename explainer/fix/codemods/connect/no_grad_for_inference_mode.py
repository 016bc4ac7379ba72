"""`torch.inference_mode()` becomes `torch.no_grad()` where training uses again what the block makes or keeps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.graph.inference_mode import inference_modes, without_inference
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.flow import flow_of
from explainer.source.value.lineage import binds, changes, reads, statements_of

_KEEPS = (ast.Assign, ast.AnnAssign, ast.keyword, ast.Dict)
_ONLY = 2.0


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each use of inference mode, and one for all of them where there are several."""
    if not context.has_failed:
        return
    found = [(file, node) for file in context.program.parsed() for node in inference_modes(file, context.program)]
    ranked = sorted(found, key=lambda one: -_belief(one[0], one[1], context))
    for file, node in ranked:
        is_all = len(ranked) == 1 and isinstance(file.parents.get(node), _KEEPS)  # nothing else makes such tensors
        yield Proposal(
            edits=tuple(without_inference(file, node)),
            culprit=culprit_of(file, node, "makes inference tensors, which no later training step may use"),
            belief=_ONLY if is_all else _belief(file, node, context),
        )
    if len(ranked) > 1:
        file, node = ranked[0]
        yield Proposal(
            edits=tuple(edit for each in ranked for edit in without_inference(*each)),
            culprit=culprit_of(file, node, "makes inference tensors, which no later training step may use"),
            belief=_belief(file, node, context) - 0.1,
        )


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
