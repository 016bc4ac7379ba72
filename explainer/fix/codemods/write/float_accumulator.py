"""`total = torch.tensor(0.0)` for `torch.tensor(0)`, to which a loss is added in place: whole numbers hold no fractions.

What `index_add_` and its like are to write fractions into gets their dtype where it is made: `torch.zeros(n, dtype=weights.dtype)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.indexed_write import WHOLE_TYPES, indexed_write
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import all_parameters
from explainer.source.value.lineage import Scope, definitions, root_of, scope_of

_WHOLE = ("torch.long", "torch.int64", "torch.int32", "torch.int")
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
    if str(context.fields.get("left_type")).lower() in WHOLE_TYPES:
        for file, statement in list(raised_at(context))[:1]:
            yield from _written_by_index(statement, file, context.program)


def _written_by_index(statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[Proposal]:
    """`torch.zeros(n, dtype=torch.long)` that a line of the same function writes fractions into by index."""
    scope = scope_of(statement, file, program)
    for target, value in filter(None, map(indexed_write, walk(statement))):
        made = definitions(target.id, statement, scope) if isinstance(target, ast.Name) and scope is not None else []
        for one in made:
            given = (
                one.value
                if isinstance(one, ast.Assign) and dotted_name(one.targets[0]) == dotted_name(target)
                else None
            )
            dtype = (
                next((word for word in given.keywords if word.arg == "dtype"), None)
                if isinstance(given, ast.Call)
                else None
            )
            known = dotted_name(value)
            is_known = known is not None and _is_bound_before(known, one, scope)
            if dtype is not None and (program.names(file).qualified(dtype.value) or "") in _WHOLE:
                yield Proposal(
                    edits=(edit_of(file, dtype.value, f"{known}.dtype" if is_known else "torch.float32"),),
                    culprit=culprit_of(
                        file, one, f"holds whole numbers, and line {statement.lineno} writes fractions into it"
                    ),
                    belief=2.2,
                    title="Make what holds fractions in their dtype",
                )


def _is_bound_before(name: str, at: ast.stmt, scope: Scope | None) -> bool:
    """Whether a name is known where a statement stands: a parameter, or bound above."""
    if scope is None:
        return False
    is_given = not isinstance(scope, ast.Module) and name in all_parameters(scope)
    return is_given or bool(definitions(name, at, scope))


def _edit(value: ast.expr, file: SourceFile, program: Program) -> Edit | None:
    """The edit that makes a number, or zeros of a whole dtype, a float."""
    if not isinstance(value, ast.Call):
        return None
    names = program.names(file)
    first = value.args[0] if value.args else None
    if names.is_call(value, "torch.tensor") and isinstance(first, ast.Constant) and type(first.value) is int:
        return edit_of(file, first, f"{first.value}.0")
    dtype = next((one for one in value.keywords if one.arg == "dtype"), None)
    if dtype is not None and names.qualified(dtype.value) in _WHOLE:
        return edit_of(file, dtype.value, "torch.float32")
    return None
