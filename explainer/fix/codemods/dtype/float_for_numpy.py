"""NumPy has no bfloat16, and is given float32: `scores.float().cpu().numpy()`, `np.stack([each.float() for each in kept])`.

Every bfloat16 value is a float32 one; the array holds the same numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.clue.seen import seen, seen_tensors
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.tree import walk
from explainer.source.value.array_kind import ARRAY, kind_of
from explainer.source.value.binding import Value

_SAID = "unsupported ScalarType BFloat16"
_HALF = "bfloat16"
_MOVES = frozenset({"cpu", "detach", "contiguous", "clone", "squeeze"})
_FLOATS = frozenset({"float", "double"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit of all that the failing statement hands to NumPy."""
    if not context.has_failed or _SAID not in message_of(context):
        return
    for file, statement in failing_statements(context)[:1]:
        calls = [one for one in walk(statement) if isinstance(one, ast.Call)]
        edits = [edit for one in calls for edit in _handed(one, file, context)]
        if edits:
            yield Proposal(
                edits=tuple(dict.fromkeys(edits)),
                culprit=culprit_of(file, statement, "hands bfloat16 to NumPy, which has no such dtype"),
                belief=2.0,
            )


def _handed(call: ast.Call, file: SourceFile, context: Context) -> Iterator[Edit]:
    """The edits of what one call hands over: `x` of `x.numpy()`, the arguments of a function of NumPy or its like."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "numpy":
        known = seen(call.func.value, context)
        if known is None or known.dtype == _HALF:
            yield from _cast(call.func.value, file)
        return
    if (context.program.names(file).qualified(call.func) or "").startswith("torch."):
        return
    given = [*call.args, *(word.value for word in call.keywords)]
    parts = [part for one in given if isinstance(one, (ast.List, ast.Tuple)) for part in one.elts]
    for one in (*given, *parts):
        known = seen(one, context)
        if known is not None and known.dtype == _HALF and kind_of(Value(one, file), context.program) != ARRAY:
            yield from _cast(one, file)
        elif known is None and _holds_half(one, context):
            yield edit_of(file, one, f"[each.float() for each in {file.segment(one)}]")


def _holds_half(node: ast.expr, context: Context) -> bool:
    """Whether a list was seen to hold bfloat16, and nothing but tensors of it."""
    prefix = f"{ast.unparse(node)}["
    found = [
        one.dtype for name, one in seen_tensors(context).items() if name.startswith(prefix) and name.count("[") == 1
    ]
    return bool(found) and set(found) == {_HALF}


def _cast(node: ast.expr, file: SourceFile) -> Iterator[Edit]:
    """`.float()` behind what is computed, before it is moved: `x.float().cpu()`; none where it is there."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in (*_MOVES, *_FLOATS):
        if node.func.attr in _FLOATS:
            return
        node = node.func.value
    yield put_method(file, node, ".float()")
