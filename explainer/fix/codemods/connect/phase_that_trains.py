"""`torch.set_grad_enabled(phase == "train")` gets the name that the phase has where the same function goes backward.

Only where a trace saw grad mode off on that line, and the backward stands under a test of the same name: `if phase == "fit":`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.trace import GRAD_OFF
from explainer.source.file import SourceFile
from explainer.source.loop.backward import find_backwards
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import scope_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the traced switch that asks for a phase which the function does not train in."""
    for _, file, statement in traced_statements(GRAD_OFF, context):
        names = context.program.names(file)
        heads = [one.context_expr for one in statement.items] if isinstance(statement, ast.With) else [statement]
        for call in (node for head in heads for node in walk(head)):
            if isinstance(call, ast.Call) and names.is_call(
                call, "torch.set_grad_enabled", "torch.autograd.set_grad_enabled"
            ):
                asked = _compared(call.args[0]) if call.args else None
                if asked is None:
                    continue
                name, value = asked
                meant = _phases(name, statement, file, context.program)
                if len(meant) == 1 and meant[0].value != value.value:
                    yield Proposal(
                        edits=(edit_of(file, value, file.segment(meant[0])),),
                        culprit=culprit_of(file, call, f"asks for another phase than the one that trains: {file.segment(meant[0])}"),
                        belief=3.0,
                    )  # fmt: skip


def _compared(node: ast.expr) -> tuple[str, ast.Constant] | None:
    """The name and the text of `phase == "train"`."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq):
        return None
    left, right = node.left, node.comparators[0]
    is_text = isinstance(right, ast.Constant) and isinstance(right.value, str)
    return (left.id, right) if isinstance(left, ast.Name) and is_text and isinstance(right, ast.Constant) else None


def _phases(name: str, at: ast.stmt, file: SourceFile, program: Program) -> list[ast.Constant]:
    """What a name is compared with where a backward of the same function stands, each text once."""
    scope = scope_of(at, file, program)
    found: dict[object, ast.Constant] = {}
    for backward in find_backwards(program):
        if backward.file is not file or scope_of(backward.call, file, program) is not scope:
            continue
        around: ast.AST | None = file.enclosing(backward.statement, ast.If)
        while isinstance(around, ast.If):
            asked = _compared(around.test)
            inside = any(backward.statement is one for part in around.body for one in walk(part))
            if asked is not None and asked[0] == name and inside:
                found.setdefault(asked[1].value, asked[1])
            around = file.enclosing(around, ast.If)
    return list(found.values())
