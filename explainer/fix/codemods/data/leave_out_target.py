"""`features = table[:, :-1]` where the labels are `table[:, -1]` of the same table: the label is no feature of itself.

Only where the live program had the target as a column of its features, and the layer was built for one feature less.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.shape.layer_input import leaked_column
from explainer.source.data.label_marker import is_name_of_labels
from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, scope_of

# What of a table is not the table: its size, its names, a column that is taken out.
_PARTS = frozenset(
    {"shape", "columns", "size", "ndim", "dtypes", "pop", "drop", "head", "describe", "info", "iloc", "loc", "dim"}
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each place that takes the whole table where another takes the label out of it."""
    column = leaked_column(context)
    if column is None:
        return
    at, width = column
    for file in context.program.parsed():
        for node in (one for one in file.walk() if isinstance(one, ast.Subscript)):
            taken = _label_of(node, at, width, context.program.names(file))
            wholes = _wholes(taken[0], node, file) if taken is not None else []
            if taken is not None and len(wholes) == 1 and _is_label(node, wholes[0], file):
                (whole,) = wholes
                why = f"holds the label as well, which `{file.segment(node)}` takes from it"
                yield Proposal(
                    edits=(edit_of(file, whole, f"{whole.id}{taken[1]}"),),
                    culprit=culprit_of(file, whole, why),
                    belief=3.0,
                )


def _label_of(node: ast.Subscript, at: int, width: int, names: Names) -> tuple[str, str] | None:
    """The table that a subscript takes the label's column from, and what is put behind it for the rest of its columns."""
    base, index = node.value, node.slice
    if not isinstance(node.ctx, ast.Load):
        return None
    if isinstance(base, ast.Attribute) and base.attr == "iloc" and isinstance(base.value, ast.Name):
        rest = _rest(index, at, width)
        return (base.value.id, f".iloc{rest}") if rest is not None and rest.startswith("[:,") else None
    if not isinstance(base, ast.Name):
        return None
    bound = names.assignments(index.id, names.file.tree) if isinstance(index, ast.Name) and names.file.tree else []
    key = bound[0].value if len(bound) == 1 else index
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return (base.id, f".drop(columns={names.file.segment(index)})") if _is_frame(base, names) else None
    rest = _rest(index, at, width)
    return (base.id, rest) if rest is not None else None


def _is_frame(table: ast.Name, names: Names) -> bool:
    """Whether a name is bound to what pandas made: a dictionary has keys as well."""
    made = [one.node for one in bounds_of(scope_of(table, names.file)) if one.name == table.id and not one.fills]
    calls = [one for node in made for one in walk(node) if isinstance(one, ast.Call)]
    return any((names.qualified(one.func) or "").startswith("pandas.") for one in calls)


def _is_label(node: ast.Subscript, whole: ast.Name, file: SourceFile) -> bool:
    """Whether a column is taken for the label: by the name that it gets, or where it is handed on beside the whole."""
    statement = file.statement(node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    is_named = target is not None and is_name_of_labels(ast.unparse(target))
    return is_named or file.statement(whole) is statement


def _rest(index: ast.expr, at: int, width: int) -> str | None:
    """The columns beside the label's, which is the first or the last: `[:, :-1]` for `[:, -1]`, `[:-1]` of one row."""
    is_row = not isinstance(index, ast.Tuple)
    if isinstance(index, ast.Tuple):
        if len(index.elts) != 2 or ast.unparse(index.elts[0]) not in (":", "..."):
            return None
        index = index.elts[1]
    text = ast.unparse(index)
    if at == width - 1 and text in ("-1", str(at)):
        return "[:-1]" if is_row else "[:, :-1]"
    if at == 0 and text == "0" and not is_row:  # `pairs[0]` may be anything
        return "[:, 1:]"
    return None


def _wholes(name: str, label: ast.AST, file: SourceFile) -> list[ast.Name]:
    """Where the scope of the label reads the whole table, beside what only asks for its size or another column."""
    found = []
    for one in walk(scope_of(label, file)):
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load):
            above = file.parents.get(one)
            is_part = isinstance(above, ast.Subscript) or (isinstance(above, ast.Attribute) and above.attr in _PARTS)
            is_part = is_part or (
                isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id == "len"
            )
            if not is_part:
                found.append(one)
    return found
