"""`pos = torch.cat(parts).requires_grad_()`: the flag is set where a tensor is made, before anything is computed from it.

Only where a trace saw that something was computed from it before, and that one assignment makes it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.model.trace import EARLY, MADE
from explainer.source.file import SourceFile
from explainer.source.tree import walk

_CONTAINERS = (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Tuple, ast.Set, ast.SetComp, ast.GeneratorExp)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the line that makes what a gradient is asked for; the line that reads it too early is guilty."""
    early = next(iter(traced_statements(EARLY, context)), None)
    for line, file, statement in traced_statements(MADE, context):
        if early is None or not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        if any(isinstance(one, ast.Attribute) and one.attr == "requires_grad_" for one in walk(statement)):
            continue
        edit = _flag(file, statement, statement.targets[0].id, early[2])
        if edit is None:
            continue
        yield Proposal(
            edits=(edit,),
            culprit=culprit_of(early[1], early[2], early[0].says),
            belief=2.2 if line.operation in ast.unparse(statement.value) else 1.2,
        )


def _flag(file: SourceFile, statement: ast.Assign, name: str, early: ast.stmt) -> Edit | None:
    """The edit behind the tensor, or behind the dictionary that holds it, for the one entry of it that is read too early."""
    if not isinstance(statement.value, _CONTAINERS):
        return put_method(file, statement.value, ".requires_grad_()")
    read = {
        file.segment(one)
        for one in walk(early)
        if isinstance(one, ast.Subscript)
        and isinstance(one.ctx, ast.Load)
        and isinstance(one.value, ast.Name)
        and one.value.id == name
        and isinstance(one.slice, ast.Constant)
    }
    is_near = isinstance(statement.value, (ast.Dict, ast.DictComp)) and len(read) == 1
    if not is_near:
        return None
    flag = f"{read.pop()}.requires_grad_()"
    return None if flag in file.text else insert_after(file, statement, flag)
