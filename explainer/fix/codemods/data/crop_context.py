"""`logits = self(ids[:, -self.positions.num_embeddings:])`: what a sampling loop grows is cropped to the table of positions.

Only where the lookup that failed is by position, and the call behind it stands in a loop that joins a token to what it gives.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_REFUSED = "index out of range in self"
_JOINS = ("torch.cat", "torch.concat", "torch.concatenate")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the call by which the sampling loop ran the forward that failed."""
    statements = failing_statements(context) if _REFUSED in message_of(context) else []
    if len(statements) < 2:
        return
    (file, statement), (outer, call_statement) = statements[:2]
    table = next((one for node in walk(statement) if (one := _table(node, file, context)) is not None), None)
    for call in walk(call_statement) if table is not None else ():
        owner = dotted_name(call.func) if isinstance(call, ast.Call) and len(call.args) >= 1 else None
        if not isinstance(call, ast.Call) or owner is None or not isinstance(call.args[0], ast.Name):
            continue
        if _is_grown(call, call.args[0].id, outer, context):
            rows = f"{table.replace('self', owner, 1)}.num_embeddings" if table is not None else ""
            yield Proposal(
                edits=(edit_of(outer, call.args[0], f"{call.args[0].id}[:, -{rows} :]"),),
                culprit=culprit_of(
                    outer, call, "gives all that was sampled so far, which becomes longer than the table of positions"
                ),
                belief=2.5,
                is_origin=True,
            )


def _table(node: ast.AST, file: SourceFile, context: Context) -> str | None:
    """The name of the table of a lookup by position: `self.wpe(torch.arange(t))`."""
    if not isinstance(node, ast.Call) or not node.args or isinstance(node.args[0], ast.Starred):
        return None
    name = dotted_name(node.func) or ""
    parts = [node.args[0], *(one.node for one in resolver_of(context.program).behind(Value(node.args[0], file)))]
    names = context.program.names(file)
    is_by_position = any(
        isinstance(each, ast.Call) and names.is_call(each, "torch.arange") for one in parts for each in walk(one)
    )
    return name if name.startswith("self.") and is_by_position else None


def _is_grown(call: ast.Call, name: str, file: SourceFile, context: Context) -> bool:
    """Whether a loop round a call joins something to what it is given, and binds it anew."""
    names = context.program.names(file)
    loops = (one for one in file.around(call) if isinstance(one, (ast.For, ast.While)))
    return any(
        isinstance(one, ast.Assign)
        and any(dotted_name(target) == name for target in one.targets)
        and isinstance(one.value, ast.Call)
        and names.is_call(one.value, *_JOINS)
        and any(isinstance(each, ast.Name) and each.id == name for each in walk(one.value))
        for loop in loops
        for one in walk(loop)
    )
