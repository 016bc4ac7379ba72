"""`1 - done` of a bool tensor becomes `1 - done.float()`; as an index, or what a fill or choice goes by, it becomes `~done`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand, put_method
from explainer.source.file import SourceFile
from explainer.source.tree import walk
from explainer.source.value.number import number_of

_REFUSED = "Subtraction, the `-` operator, with a bool tensor is not supported"
_CHOOSE = frozenset(
    ("masked_fill", "masked_fill_", "masked_select", "where", "bool", "nonzero", "logical_and", "logical_or")
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each subtraction of the line that raised with a number on one side and a bool tensor on the other."""
    if _REFUSED not in message_of(context):
        return
    for file, statement in list(raised_at(context))[:1]:
        names = context.program.names(file)
        for node in walk(statement):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
                continue
            sides = (node.left, node.right)
            numbers = [number_of(one, names) for one in sides]
            if (numbers[0] is None) == (numbers[1] is None):
                continue
            mask = sides[0] if numbers[0] is None else sides[1]
            tensor = seen(mask, context)
            if tensor is not None and tensor.dtype != "bool":
                continue
            is_inverse = numbers[0] == 1 and _is_choice(node, file)
            edit = edit_of(file, node, f"~{operand(file, mask)}") if is_inverse else put_method(file, mask, ".float()")
            yield Proposal(
                edits=(edit,),
                culprit=culprit_of(file, node, "subtracts with a bool tensor, which has no difference"),
                belief=2.5 if tensor is not None else 1.5,
            )


def _is_choice(node: ast.BinOp, file: SourceFile) -> bool:
    """Whether a difference is an index, or goes by what takes a mask."""
    above = file.parents.get(node)
    if isinstance(above, ast.Subscript) and above.slice is node:
        return True
    called = above.attr if isinstance(above, ast.Attribute) else getattr(getattr(above, "func", None), "attr", "")
    return called in _CHOOSE
