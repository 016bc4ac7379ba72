"""`q @ k.transpose(-2, -1)` for `q @ k`: each row of the one meets each row of the other along the features that both have last."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen_shape import seen_shape
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk

_REFUSED = re.compile(r"shapes cannot be multiplied|first two dimensions of batch2 tensor to be")
_ROWS = "right where each row meets each other row; where it meets its own alone, `(a * b).sum(-1)`"
_FIRST = "right where a sum over the rows is meant"
_PRODUCTS = frozenset({"matmul", "mm", "bmm"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each product on the line that raised whose sides were seen, and fit the other way round."""
    if not _REFUSED.search(message_of(context)):
        return
    for file, statement in list(raised_at(context))[:1]:
        for node in walk(statement):
            sides = _sides(node, file, context.program)
            left, right = (seen_shape(one, file, context) for one in sides) if sides is not None else (None, None)
            if (
                sides is None
                or left is None
                or right is None
                or min(len(left), len(right)) < 2
                or left[-1] == right[-2]
            ):
                continue
            if left[-1] == right[-1]:
                one = _proposal(sides[1], len(right), file, "has its features last, as what it is multiplied with")
                yield replace(one, applicability="unsafe", because=_ROWS) if left == right and len(left) == 2 else one
            elif left[-2] == right[-2]:
                one = _proposal(sides[0], len(left), file, "has its rows first, as what it is multiplied with")
                yield replace(one, applicability="unsafe", because=_FIRST)


def _sides(node: ast.AST, file: SourceFile, program: Program) -> tuple[ast.expr, ast.expr] | None:
    """The two sides of a product of matrices: `a @ b`, `a.bmm(b)`, `torch.matmul(a, b)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _PRODUCTS:
        return None
    if program.names(file).is_call(node, f"torch.{node.func.attr}"):
        return (node.args[0], node.args[1]) if len(node.args) == 2 else None
    return (node.func.value, node.args[0]) if len(node.args) == 1 else None


def _proposal(side: ast.expr, rank: int, file: SourceFile, why: str) -> Proposal:
    method = ".T" if rank == 2 else ".transpose(-2, -1)"
    return Proposal(edits=(put_method(file, side, method),), culprit=culprit_of(file, side, why), belief=2.0)
