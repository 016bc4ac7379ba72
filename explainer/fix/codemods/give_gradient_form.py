"""A gradient gets the form of what it belongs to: `p.grad = piece.view_as(p)`, and a scalar loss needs none at all."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.crash import crash_places
from explainer.fix.loss import drop_argument
from explainer.fix.rewrite import put_method
from explainer.source.lineage import definitions, scope_of, value_of
from explainer.source.name import dotted_name

_ONES = ("torch.ones", "torch.tensor", "torch.FloatTensor", "torch.Tensor", "torch.ones_like")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the line that raised."""
    if not context.has_failed:
        return
    for file, statement in crash_places(context):
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if isinstance(target, ast.Attribute) and target.attr == "grad" and isinstance(statement, ast.Assign):
            owner = file.segment(target.value)
            if f"view_as({owner})" not in file.segment(statement.value):
                yield Proposal(
                    edits=(put_method(file, statement.value, f".view_as({owner})"),),
                    culprit=culprit_of(file, statement, f"gives `{owner}` a gradient of another shape"),
                    belief=1.5,
                )
            return
        for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
            is_backward = isinstance(call.func, ast.Attribute) and call.func.attr == "backward" and len(call.args) == 1
            if not is_backward or not isinstance(call.func, ast.Attribute):
                continue
            name, scope = dotted_name(call.args[0]), scope_of(statement, file, context.program)
            made = definitions(name, statement, scope) if name and scope is not None else []
            value = value_of(made[-1], name or "") if made else call.args[0]
            if value is not None and context.program.names(file).is_call(value, *_ONES):
                loss = file.segment(call.func.value)
                yield Proposal(
                    edits=(drop_argument(file, call, call.args[0]),),
                    culprit=culprit_of(file, call, f"gives `{loss}`, one number, a gradient of another shape"),
                    belief=1.5,
                )
        return
