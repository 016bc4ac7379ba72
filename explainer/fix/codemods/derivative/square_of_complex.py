"""The square of a complex difference is its size's: `(z - w).abs() ** 2`, a real number, for `(z - w) ** 2`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.loop.backward import find_backwards
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import lineage
from explainer.source.value.number import number_of

_REFUSED = "only for real scalar outputs but got torch.complex"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all squares that the loss of the failing backward is computed of."""
    if _REFUSED not in message_of(context):
        return
    failed = {statement for _, statement in raised_at(context)}
    for one in find_backwards(context.program):
        if one.loss is None or one.statement not in failed:
            continue
        lines = [one.loss, *lineage(one.loss, one.statement, one.file, context.program)]
        bases = dict.fromkeys(base for line in lines for base in _squared(line, one.file, context.program))
        found = [base for base in bases if (told := seen(base, context)) is None or told.dtype.startswith("complex")]
        if found:
            yield Proposal(
                edits=tuple(put_method(one.file, base, ".abs()") for base in found),
                culprit=culprit_of(
                    one.file, found[0], "is complex, and so is its square: no size that could be made smaller"
                ),
                belief=2.0,
            )


def _squared(line: ast.AST, file: SourceFile, program: Program) -> Iterator[ast.expr]:
    names = program.names(file)
    for node in walk(line):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and number_of(node.right, names) == 2:
            yield node.left
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_power = node.func.attr == "pow" and len(node.args) == 1 and number_of(node.args[0], names) == 2
            if is_power or (node.func.attr == "square" and not node.args):
                yield node.func.value
