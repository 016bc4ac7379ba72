"""Targets that are computed by a function which is to record a graph again: `target = self.scores(x).detach()`.

A function that ran with grad mode off gave targets their values too. With its graph a target would be pulled towards the prediction.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loss.loss import loss_at
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.resolve import resolver_of

_TARGET = re.compile(
    r"(?:^|_)(?:targets?|teacher|references?|ref|pseudo|soft_?labels?|anchor|goal|fixed|old)(?:_|$)", re.IGNORECASE
)
_HELD = frozenset({"detach", "item", "argmax", "numpy", "tolist"})


def held_targets(function: Function, file: SourceFile, program: Program) -> Iterator[Edit]:
    """An edit for each target that a call of the function gives, where other calls give predictions, and for those it makes itself."""
    yield from (edit for one in walk(function) if isinstance(one, ast.Assign) and (edit := _own(one, file)) is not None)
    calls = resolver_of(program).calls_of(function, file)
    held = [(where, one, edit) for where, one in calls if (edit := _held(one, where, program)) is not None]
    if len(held) < len(calls):
        yield from dict.fromkeys(edit for _, _, edit in held)


def _own(statement: ast.Assign, file: SourceFile) -> Edit | None:
    """The edit for a target that the function computes beside what it is held against: `target = reward + gamma * v_next`."""
    name = statement.targets[0] if len(statement.targets) == 1 else None
    is_target = isinstance(name, ast.Name) and _TARGET.search(name.id) is not None
    is_cut = any(isinstance(one, ast.Attribute) and one.attr in _HELD for one in walk(statement))
    is_computed = isinstance(statement.value, (ast.BinOp, ast.Call))
    return put_method(file, statement.value, ".detach()") if is_target and is_computed and not is_cut else None


def _held(call: ast.Call, file: SourceFile, program: Program) -> Edit | None:
    """The edit for what a call gives where that is a target: by the name that it gets, or as the target of `kl_div`."""
    statement = file.statement(call)
    if any(isinstance(one, ast.Attribute) and one.attr in _HELD for one in walk(statement)):
        return None
    name = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if isinstance(statement, ast.Assign) and isinstance(name, ast.Name) and _TARGET.search(name.id):
        return put_method(file, statement.value, ".detach()")
    for one in walk(statement):
        loss = loss_at(one, file, program) if isinstance(one, ast.Call) else None
        if (
            loss is not None
            and loss.name in ("kl_div", "KLDivLoss")
            and any(part is call for part in walk(loss.target))
        ):
            return put_method(file, loss.target, ".detach()")
    return None
