"""`total = torch.tensor(0.0)` for `torch.tensor(0)`, to which a loss is added in place: whole numbers hold no fractions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.lineage import definitions, root_of, scope_of

_REFUSED = "can't be cast to the desired output type Long"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit where the value was made that the line which raised adds to."""
    for file, statement in list(raised_at(context))[:1] if _REFUSED in message_of(context) else ():
        target = statement.target if isinstance(statement, ast.AugAssign) else None
        scope = scope_of(statement, file, context.program)
        made = definitions(root_of(target) or "", statement, scope) if target is not None and scope is not None else []
        for one in made:
            value = (
                one.value
                if isinstance(one, ast.Assign) and dotted_name(one.targets[0]) == dotted_name(target)
                else None
            )
            edit = _edit(value, file, context.program) if value is not None else None
            if edit is not None:
                why = f"begins as whole numbers, and line {statement.lineno} adds fractions to it in place"
                yield Proposal(edits=(edit,), culprit=culprit_of(file, one, why), belief=2.0)


def _edit(value: ast.expr, file: SourceFile, program: Program) -> Edit | None:
    """The edit that makes a number, or zeros of a whole dtype, a float."""
    if not isinstance(value, ast.Call):
        return None
    names = program.names(file)
    first = value.args[0] if value.args else None
    if names.is_call(value, "torch.tensor") and isinstance(first, ast.Constant) and type(first.value) is int:
        return edit_of(file, first, f"{first.value}.0")
    dtype = next((one for one in value.keywords if one.arg == "dtype"), None)
    if dtype is not None and names.qualified(dtype.value) in ("torch.long", "torch.int64", "torch.int32", "torch.int"):
        return edit_of(file, dtype.value, "torch.float32")
    return None
