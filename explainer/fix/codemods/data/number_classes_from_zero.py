"""`{"cat": 0, "dog": 1}` for `{"cat": 1, "dog": 2}`: a table of the program's own numbers its classes from 1, a loss from 0.

Written by hand, or made by `enumerate(names, 1)` and `i + 1` under a name that speaks of classes; where a loss refused the
highest of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.source.data.code_table import is_looked_up
from explainer.source.file import SourceFile
from explainer.source.name import bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

_CLASSES = re.compile(
    r"label|class|categor|intent|tag|species|emotion|topic|genre|2id|to_id|2idx|to_idx", re.IGNORECASE
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each table whose highest number the loss refused."""
    target = str(context.fields.get("target") or "")
    live = context.incident.fact("live_refused_index")
    if not context.has_failed or not target.isdigit() or (live is not None and live.value.endswith(" from 0")):
        return  # where there is a label 0 too, as a background has, the model lacks a class
    for file in context.program.parsed():
        for statement in file.walk():
            if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
                continue
            names = [one.rpartition(".")[2] for one in bound_names(statement)]
            edits = _from_zero(statement.value, names[0], int(target), file) if len(names) == 1 else ()
            if edits and is_looked_up(names[0], context.program) and not _has_zero(names[0], context.program):
                yield Proposal(
                    edits=tuple(edits),
                    culprit=culprit_of(file, statement, "numbers the classes from 1, and the loss takes them from 0"),
                    belief=2.2,
                )


def _has_zero(table: str, program: Program) -> bool:
    """Whether what the table lacks is numbered 0: `TABLE.get(name, 0)`."""
    return any(
        isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "get"
        and len(one.args) == 2 and isinstance(one.args[1], ast.Constant) and one.args[1].value == 0
        and (dotted_name(one.func.value) or "").rpartition(".")[2] == table
        for file in program.parsed()
        for one in file.walk()
    )  # fmt: skip


def _from_zero(table: ast.expr, name: str, top: int, file: SourceFile) -> tuple[Edit, ...]:
    if isinstance(table, ast.Dict):
        codes = [one.value for one in table.values if isinstance(one, ast.Constant) and type(one.value) is int]
        is_whole = len(codes) == len(table.values) > 1 and set(codes) == set(range(1, top + 1))
        return (
            tuple(edit_of(file, one, str(code - 1)) for one, code in zip(table.values, codes, strict=True))
            if is_whole
            else ()
        )
    if not isinstance(table, ast.DictComp) or len(table.generators) != 1 or not _CLASSES.search(name):
        return ()
    walked = table.generators[0].iter
    if not isinstance(walked, ast.Call) or not isinstance(walked.func, ast.Name) or walked.func.id != "enumerate":
        return ()
    start = [*walked.args[1:], *(one.value for one in walked.keywords if one.arg == "start")]
    value = table.value
    if start:
        is_one = isinstance(start[0], ast.Constant) and start[0].value == 1 and isinstance(value, ast.Name)
        return (edit_of(file, start[0], "0"),) if is_one else ()
    is_shifted = (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Add)
        and isinstance(value.left, ast.Name)
        and isinstance(value.right, ast.Constant)
        and value.right.value == 1
    )
    reads = sum(isinstance(one, ast.Constant) for one in walk(value))
    return (edit_of(file, value, file.segment(value.left)),) if is_shifted and reads == 1 else ()  # type: ignore[attr-defined]
