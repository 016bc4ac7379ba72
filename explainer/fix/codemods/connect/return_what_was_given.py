"""What a bank of values was given is handed on, not what is read back from it: `return vectors` for `return self.vectors[ids]`.

`self.vectors[ids] = vectors.detach()` keeps values only, as a bank should; what reads the same entries again gets them without a
graph, and nothing before the bank trains. Only where a trace saw that this very cut starves parameters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.trace import STARVING_CUT
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.lineage import binds, block_of, changes, reads

_SAME_VALUES = frozenset(("detach", "clone", "contiguous"))
_PLAIN = (
    ast.Name,
    ast.Attribute,
    ast.Constant,
    ast.Slice,
    ast.Tuple,
    ast.BinOp,
    ast.UnaryOp,
    ast.operator,
    ast.unaryop,
)
_ON_PURPOSE = re.compile(
    r"target|teacher|label|momentum|ema\b|ema_|\bold|_old|stale|frozen|negative|queue|history|keys?\b|reference",
    re.IGNORECASE,
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each traced write of detached values whose place is read back at once."""
    for line, file, statement in traced_statements(STARVING_CUT, context):
        written = _written(statement)
        function = context.program.names(file).function_of(statement)
        words = f"{getattr(function, 'name', '')} {file.segment(statement)}"
        if written is None or _ON_PURPOSE.search(words):
            continue
        target, given = written
        read = _read_back(target, given, statement, file)
        if read is not None:
            yield Proposal(
                edits=(edit_of(file, read, given),),
                culprit=culprit_of(file, statement, line.says),
                belief=1.5,
            )


def _written(statement: ast.stmt) -> tuple[ast.Subscript, str] | None:
    """The entry that a statement writes, and the name whose detached values it gets."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value, is_cut = statement.targets[0], statement.value, False
    while not isinstance(value, ast.Name):
        called = value.func if isinstance(value, ast.Call) and not value.args and not value.keywords else None
        if isinstance(called, ast.Attribute) and called.attr in _SAME_VALUES:
            is_cut, value = is_cut or called.attr == "detach", called.value
        elif isinstance(value, ast.Attribute) and value.attr == "data":
            is_cut, value = True, value.value
        else:
            return None
    is_entry = isinstance(target, ast.Subscript) and dotted_name(target.value) is not None and _is_plain(target.slice)
    return (target, value.id) if is_cut and is_entry and isinstance(target, ast.Subscript) else None


def _is_plain(key: ast.expr) -> bool:
    """Whether a key is the same each time that it is computed: it calls nothing."""
    return all(isinstance(node, (*_PLAIN, ast.expr_context)) for node in ast.walk(key))


def _read_back(target: ast.Subscript, given: str, statement: ast.stmt, file: SourceFile) -> ast.expr | None:
    """What a later statement of the block returns or binds, where it is the entry as it was written."""
    block = block_of(statement, file)
    kept = {given, dotted_name(target.value) or "", *reads(target.slice, graph=False)}
    for one in block[block.index(statement) + 1 :] if statement in block else ():
        value = one.value if isinstance(one, (ast.Return, ast.Assign)) else None
        if value is not None and ast.unparse(value) == ast.unparse(target):
            return value
        if isinstance(one, ast.Return) or not _leaves(kept, one):
            return None
    return None


def _leaves(names: set[str], statement: ast.stmt) -> bool:
    """Whether a statement can not change what some names hold: it neither writes nor names them, nor calls a method of their owner."""
    if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
        return False
    touched = binds(statement) | changes(statement) | reads(statement, graph=False)
    owners = {name.partition(".")[0] for name in names}
    called = (dotted_name(node.func) or "" for node in walk(statement) if isinstance(node, ast.Call))
    of_others = {node.value for node in walk(statement) if isinstance(node, ast.Attribute)}
    named = {node.id for node in walk(statement) if isinstance(node, ast.Name) and node not in of_others}
    return not (touched & names or named & owners or owners & {one.partition(".")[0] for one in called})
