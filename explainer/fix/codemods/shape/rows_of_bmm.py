"""`torch.bmm` takes batches of matrices: a row for each sample becomes one, `torch.bmm(docs, query.unsqueeze(-1)).squeeze(-1)`.

Two matrices without a batch are multiplied by `torch.mm`. So does a row for each sample behind `@`, which takes all of them for one
matrix: `(docs @ query.unsqueeze(-1)).squeeze(-1)`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen_shape import Shape, seen_shape
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand, spell
from explainer.source.tree import walk

_REFUSED = re.compile(r"batch[12] must be a 3D tensor")
_MULTIPLIED = "shapes cannot be multiplied"
_DROPS = frozenset({"squeeze", "flatten", "view", "reshape"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such product of the line that raised."""
    if _MULTIPLIED in message_of(context):
        yield from _behind_operator(context)
    if not _REFUSED.search(message_of(context)):
        return
    for file, statement in list(raised_at(context))[:1]:
        names = context.program.names(file)
        for call in walk(statement):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "bmm":
                continue
            is_function = names.is_call(call, "torch.bmm")
            sides = call.args if is_function else [call.func.value, *call.args]
            if len(sides) != 2 or call.keywords:
                continue
            left, right = (operand(file, one) for one in sides)
            shapes = [seen_shape(one, file, context) for one in sides]
            axis = _missing(shapes[0], shapes[1])
            above = file.parents.get(call)
            end = "" if isinstance(above, ast.Attribute) and above.attr in _DROPS else f".squeeze({axis})"
            bmm = spell(names, "torch.bmm")
            if axis == -1:
                new, what = f"{bmm}({left}, {right}.unsqueeze(-1)){end}", file.segment(sides[1])
            elif axis == 1:
                new, what = f"{bmm}({left}.unsqueeze(1), {right}){end}", file.segment(sides[0])
            elif axis == 0:
                new, what = f"{spell(names, 'torch.mm')}({left}, {right})", file.segment(sides[0])
            else:
                continue
            yield Proposal(
                edits=(edit_of(file, call, new),),
                culprit=culprit_of(file, call, f"takes a batch of matrices, and `{what}` is none"),
                belief=2.0,
            )


def _behind_operator(context: Context) -> Iterator[Proposal]:
    """`docs @ query`, of a batch of matrices and a row for each of them."""
    for file, statement in list(raised_at(context))[:1]:
        for node in walk(statement):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.MatMult):
                continue
            left, right = (seen_shape(one, file, context) for one in (node.left, node.right))
            if left is None or right is None or len(left) != 3 or len(right) != 2 or None in right:
                continue
            if left[0] == right[0] and left[2] in (right[1], None):
                above = file.parents.get(node)
                end = "" if isinstance(above, ast.Attribute) and above.attr in _DROPS else ".squeeze(-1)"
                product = f"({operand(file, node.left)} @ {operand(file, node.right)}.unsqueeze(-1))"
                yield Proposal(
                    edits=(edit_of(file, node, f"{product}{end}"),),
                    culprit=culprit_of(
                        file,
                        node,
                        f"takes the rows of `{file.segment(node.right)}`, one for each sample, for one matrix",
                    ),
                    belief=2.4,
                )


def _missing(left: Shape | None, right: Shape | None) -> int | None:
    """The axis that a row for each sample lacks: the last of the right side, the second of the left one; 0 where both are matrices."""
    if left is None or right is None or None in left + right:
        return None
    if len(left) == 3 and len(right) == 2 and (left[0], left[2]) == right:
        return -1
    if len(left) == 2 and len(right) == 3 and left == right[:2]:
        return 1
    return 0 if len(left) == len(right) == 2 and left[1] == right[0] else None
