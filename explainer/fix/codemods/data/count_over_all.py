"""`int(train_y.max()) + 1` becomes `int(y.max()) + 1` where `train_y` is a part of `y` and a label of the other part was refused.

Classes are numbered over all that the program has: a highest label of what it trains on is the last one only by chance.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.loss.loss import loss_at
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, scope_of

_REFUSED = re.compile(r"(\d+) of (\d+), from -?\d+")
_HIGHEST = frozenset({"max", "amax"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each count of classes that is taken of a part of the labels which the failing loss compares with."""
    fact = context.incident.fact("live_refused_index")
    found = _REFUSED.fullmatch(fact.value) if fact is not None else None
    if not context.has_failed or found is None or int(found[1]) < int(found[2]):
        return
    for file, statement in list(raised_at(context))[:1]:
        scope = scope_of(statement, file)
        wholes = _compared(statement, file, context.program)
        for name, measured in _measured(scope, file, context.program):
            whole = _whole(name, scope)
            if whole in wholes:
                yield Proposal(
                    edits=(edit_of(file, measured, whole),),
                    culprit=culprit_of(
                        file, file.statement(measured), f"counts the classes of `{name}`, a part of `{whole}`"
                    ),
                    belief=2.4,
                    is_origin=True,
                )


def _compared(statement: ast.stmt, file: SourceFile, program: Program) -> set[str]:
    """The names of which the losses of a statement take their targets."""
    losses = (loss_at(one, file, program) for one in walk(statement) if isinstance(one, ast.Call))
    return {
        node.id for one in losses if one is not None and one.takes_classes for node in walk(one.target) if isinstance(node, ast.Name)
    }  # fmt: skip


def _measured(scope: ast.AST, file: SourceFile, program: Program) -> Iterator[tuple[str, ast.Name]]:
    """The names whose highest value a function counts by: `x` of `int(x.max()) + 1`."""
    for node in walk(scope):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add) or getattr(node.right, "value", 0) != 1:
            continue
        for call in (one for one in walk(node.left) if isinstance(one, ast.Call)):
            func = call.func
            last = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            is_function = bool(call.args) and (
                isinstance(func, ast.Name) or program.names(file).qualified(func) is not None
            )
            of = call.args[0] if is_function else func.value if isinstance(func, ast.Attribute) else None
            if last in _HIGHEST and isinstance(of, ast.Name):
                yield of.id, of


def _whole(name: str, scope: ast.AST) -> str | None:
    """`y` where a name is bound once, to a part of it: `train_y = y[rows]`."""
    bound = [one for one in bounds_of(scope) if one.name == name]
    made = bound[0].node if len(bound) == 1 else None
    if isinstance(made, ast.Tuple) and isinstance(bound[0].pick, int):
        made = made.elts[bound[0].pick]
    is_part = isinstance(made, ast.Subscript) and isinstance(made.value, ast.Name)
    return made.value.id if is_part else None  # type: ignore[union-attr]
