"""Points at where labels are marked as ignored, first of all where the rest of them is cut off: `([-100] * n + answer)[:limit]`.

No edit: whether the limit, the prompt or the template is at fault is in the data, and to be seen from that line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.tree import walk
from explainer.source.value.number import number_of

_IGNORED = -100
_MARKS = frozenset(("masked_fill", "masked_fill_", "full", "full_like", "where", "new_full", "fill_"))


def propose(context: Context) -> Iterator[Proposal]:
    """The lines that make labels of the ignored one."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and _marks(node.value, names):
                is_cut = _is_cut(node.value)
                why = "marks labels as ignored" + (", and cuts the others off behind so many" if is_cut else "")
                yield Proposal(edits=(), culprit=culprit_of(file, node, why), belief=_belief(node, file, is_cut=is_cut))


def _belief(node: ast.stmt, file: SourceFile, *, is_cut: bool) -> float:
    return (1.0 if is_cut else 0.2) + (0.2 if "label" in file.line(node.lineno).lower() else 0.0)


def _marks(value: ast.expr, names: Names) -> bool:
    """Whether an expression repeats the ignored label, or writes it over others."""
    for node in walk(value):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            lists = [one for one in (node.left, node.right) if isinstance(one, ast.List) and len(one.elts) == 1]
            if any(number_of(one.elts[0], names) == _IGNORED for one in lists):
                return True
        method = getattr(node.func, "attr", "") if isinstance(node, ast.Call) else ""
        if (
            isinstance(node, ast.Call)
            and method in _MARKS
            and any(number_of(one, names) == _IGNORED for one in node.args)
        ):
            return True
    return False


def _is_cut(value: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.upper is not None
        for node in walk(value)
    )
