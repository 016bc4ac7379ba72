"""Gathers what trains from every rank with its graph: `dist.all_gather` copies values, as `.data` does.

`dist.all_gather(parts, z)` becomes `parts = torch.distributed.nn.functional.all_gather(z)`. Its backward sums over the ranks
what each of them asks of a tensor, so that DDP's mean over the ranks is the gradient of the loss over the whole batch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.fix.text.import_line import import_after
from explainer.fix.text.rewrite import spell
from explainer.model.patch import Edit
from explainer.model.trace import CUT, STARVING_CUT
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import definitions, scope_of

# In full: a program often has an `all_gather` of its own, or imports the one that copies.
_MODULE = "torch.distributed.nn.functional"
_LIST, _TENSOR = "torch.distributed.all_gather", "torch.distributed.all_gather_into_tensor"
_INTO, _GIVEN = ("tensor_list", "output_tensor"), ("tensor", "input_tensor")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such call at which the trace saw the graph end."""
    for kind in (CUT, STARVING_CUT):
        for file, statement in traced_places(kind, context):
            call = statement.value if isinstance(statement, ast.Expr) else None
            names = context.program.names(file)
            if not isinstance(call, ast.Call) or not any(names.is_call(call, one) for one in (_LIST, _TENSOR)):
                continue
            given = {**dict(zip(("into", "tensor", "group"), call.args, strict=False)), **dict(_by_keyword(call))}
            into, tensor = given.get("into"), given.get("tensor")
            if not isinstance(into, ast.Name) or tensor is None or len(call.args) > len(("into", "tensor", "group")):
                continue
            group = f", group={file.segment(given['group'])}" if "group" in given else ""
            new = f"{_MODULE}.all_gather({file.segment(tensor)}{group})"
            if names.is_call(call, _TENSOR):
                new = f"{spell(names, 'torch.cat')}({new})"
            yield Proposal(
                edits=(
                    *_without_reader(into, statement, file, context.program),
                    edit_of(file, call, f"{into.id} = {new}"),
                    *import_after(file, f"import {_MODULE}"),
                ),
                culprit=culprit_of(file, call, "copies the values of every rank, and leaves their graph behind"),
                belief=2.0,
            )


def _by_keyword(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    for one in call.keywords:
        if one.arg is not None and one.arg != "async_op":
            yield "into" if one.arg in _INTO else "tensor" if one.arg in _GIVEN else one.arg, one.value


def _without_reader(into: ast.Name, statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[Edit]:
    """Takes out the statement that makes room for what is gathered, where nothing else reads it."""
    scope = scope_of(statement, file, program)
    made = definitions(into.id, statement, scope) if scope is not None else []
    if scope is None or len(made) != 1 or not isinstance(made[0], ast.Assign) or len(made[0].targets) != 1:
        return
    uses = [one for one in walk(scope) if isinstance(one, ast.Name) and one.id == into.id]
    if (
        isinstance(made[0].targets[0], ast.Name)
        and [one for one in uses if one.lineno < statement.lineno] == made[0].targets
    ):
        yield remove_statement(file, made[0])
