"""`x, y = boxes[..., 0], boxes[..., 1]` for `x, y = boxes.unbind(-1)`, where what is written through `x` is read in `boxes` afterwards.

`unbind` makes all its views in one call, and autograd lets none of them be written; a view that indexing made alone may be, and
the tensor under it then carries the gradient of the write.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.tree import walk
from explainer.source.value.lineage import before, scope_of

_UNBIND = "Unbind"
MAX_VIEWS = 16


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one statement of the failing function that unpacks what `unbind` gives."""
    if _UNBIND not in message_of(context):
        return
    for file, statement in list(raised_at(context))[:1]:
        scope = scope_of(statement, file, context.program)
        names = context.program.names(file)
        unpacked = [one for one in walk(scope) if isinstance(one, ast.Assign)] if scope is not None else []
        cut = [(one, made) for one in unpacked if before(one, statement) and (made := _base(one, names)) is not None]
        if len(cut) != 1:
            continue
        one, (base, dim) = cut[0]
        target = one.targets[0]
        count = len(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else 0
        if not 1 < count <= MAX_VIEWS or not _is_read_after(base, statement, scope, file):
            continue
        parts = ", ".join(f"{base}{_index(dim, at)}" for at in range(count))
        yield Proposal(
            edits=(edit_of(file, one.value, parts),),
            culprit=culprit_of(
                file, statement, "writes one of the views that one call returned, and the tensor under it is read later"
            ),
            belief=1.8,
        )


def _base(statement: ast.Assign, names: Names) -> tuple[str, int] | None:
    """The tensor that is unbound and the dimension: of `x.unbind(-1)`, `torch.unbind(x, dim=1)`."""
    call = statement.value
    if len(statement.targets) != 1 or not isinstance(call, ast.Call):
        return None
    is_method = (
        isinstance(call.func, ast.Attribute) and call.func.attr == "unbind" and not names.is_call(call, "torch.unbind")
    )
    if not is_method and not names.is_call(call, "torch.unbind"):
        return None
    given: list[ast.expr] = (
        [call.func.value, *call.args] if is_method and isinstance(call.func, ast.Attribute) else call.args
    )
    base = dotted_name(given[0]) if given else None
    dims = [*given[1:], *(one.value for one in call.keywords if one.arg == "dim")]
    if base is None or len(dims) > 1:
        return None
    try:
        dim = ast.literal_eval(dims[0]) if dims else 0
    except ValueError:
        return None
    return (base, dim) if isinstance(dim, int) else None


def _index(dim: int, at: int) -> str:
    if dim == -1:
        return f"[..., {at}]"
    return f"[{':, ' * dim}{at}]" if dim >= 0 else f".select({dim}, {at})"


def _is_read_after(base: str, statement: ast.stmt, scope: ast.AST | None, file: SourceFile) -> bool:
    """Whether the tensor under the views is read behind the write."""
    return any(
        dotted_name(one) == base and file.statement(one).lineno > statement.lineno
        for one in (walk(scope) if scope is not None else ())
        if isinstance(one, (ast.Name, ast.Attribute))
    )
