"""Rows that are drawn count from 0: `torch.randint(1, steps + 1, (n,))` becomes `torch.randint(0, steps, (n,))`.

The steps of a diffusion go from 1 to T in papers, and their tables have rows 0 to T - 1. Only where a trace saw that the drawn
numbers are refused as they are; the same draw gives each number less one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.model.trace import INDEX
from explainer.source.file import SourceFile
from explainer.source.tree import walk

_BECAUSE = "what reads the drawn number as a time, rather than as a row, gets it less one too: for papers that count from 1, subtract at the tables instead"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for a draw from 1 to the number of rows."""
    if not context.has_failed or context.fields.get("index", "") != context.fields.get("rows", ""):
        return
    for line, file, statement in traced_statements(INDEX, context):
        calls = [one for one in walk(statement) if isinstance(one, ast.Call)]
        draws = [one for one in calls if _is_draw(one)] if line.operation.startswith("randint") else []
        for call in draws if len(draws) == 1 else ():
            edits = _from_zero(call, file)
            if edits is not None:
                yield Proposal(
                    edits=edits, culprit=culprit_of(file, call, "draws from 1 to the number of rows, which count from 0"),
                    belief=2.0, applicability="unsafe", because=_BECAUSE,
                )  # fmt: skip


def _is_draw(node: ast.Call) -> bool:
    return getattr(node.func, "attr", getattr(node.func, "id", "")) == "randint"


def _from_zero(call: ast.Call, file: SourceFile) -> tuple[Edit, Edit] | None:
    given = {one.arg: one.value for one in call.keywords}
    low, high = (given.get(name) or next(iter(call.args[at : at + 1]), None) for at, name in enumerate(("low", "high")))
    if not (isinstance(low, ast.Constant) and low.value == 1 and isinstance(high, ast.BinOp)):
        return None
    one = high.right
    if not (isinstance(high.op, ast.Add) and isinstance(one, ast.Constant) and one.value == 1):
        return None
    return edit_of(file, low, "0"), edit_of(file, high, file.segment(high.left))
