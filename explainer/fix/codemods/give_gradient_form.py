"""A gradient gets the form of what it belongs to: `p.grad = piece.view_as(p)`, and a loss of one number needs none at all.

Only a flat piece is viewed: one of two dimensions may be transposed, and a view would hide that. A gradient that is not one
(`-1` in a Wasserstein loss) keeps its value and loses its dimension.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.crash import crash_places, message_of
from explainer.fix.loss import drop_argument
from explainer.fix.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.lineage import definitions, scope_of, value_of
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

_FLAT = re.compile(r"assign a gradient of size '\[\d+\]'")
_SCALAR = re.compile(
    r"grad_output\[0\] has a shape of torch\.Size\(\[1\]\) and output\[0\] has a shape of torch\.Size\(\[\]\)"
)
_MADE_OF = ("torch.tensor", "torch.FloatTensor", "torch.Tensor")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the line that raised, where the message shows the two shapes."""
    if not context.has_failed:
        return
    message = message_of(context)
    for file, statement in crash_places(context):
        if _FLAT.search(message):
            yield from _assigned(file, statement)
        elif _SCALAR.search(message):
            yield from _given(file, statement, context.program)
        return


def _assigned(file: SourceFile, statement: ast.stmt) -> Iterator[Proposal]:
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Attribute) or target.attr != "grad":
        return
    owner = file.segment(target.value)
    if f"view_as({owner})" not in file.segment(statement.value):
        yield Proposal(
            edits=(put_method(file, statement.value, f".view_as({owner})"),),
            culprit=culprit_of(file, statement, f"gives `{owner}` a flat gradient"),
            belief=1.5,
        )


def _given(file: SourceFile, statement: ast.stmt, program: Program) -> Iterator[Proposal]:
    for call in (node for node in walk(statement) if isinstance(node, ast.Call)):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "backward" or len(call.args) != 1:
            continue
        given = call.args[0]
        if isinstance(given, ast.Call) and getattr(given.func, "attr", "") == "squeeze":
            continue
        is_one = _is_one(given, statement, file, program)
        edit: Edit = drop_argument(file, call, given) if is_one else put_method(file, given, ".squeeze()")
        loss = file.segment(call.func.value)
        yield Proposal(
            edits=(edit,),
            culprit=culprit_of(file, call, f"gives `{loss}`, one number, a gradient with a dimension"),
            belief=1.5,
        )


def _is_one(node: ast.expr, at: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a gradient is 1 by what it was made of."""
    name, scope = dotted_name(node), scope_of(at, file, program)
    made = definitions(name, at, scope) if name and scope is not None else []
    value = value_of(made[-1], name or "") if len(made) == 1 else None if name else node
    if not isinstance(value, ast.Call):
        return False
    if program.names(file).is_call(value, "torch.ones"):
        return True
    inner = value.args[0] if len(value.args) == 1 and program.names(file).is_call(value, *_MADE_OF) else None
    parts = inner.elts if isinstance(inner, ast.List) else [inner]
    return all(isinstance(part, ast.Constant) and part.value == 1 for part in parts)
