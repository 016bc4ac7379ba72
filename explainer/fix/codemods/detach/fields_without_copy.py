"""The fields of a record are read as they are: `vars(self).items()` for `asdict(self).items()`, which copies each value deeply.

`astuple(x)` becomes `tuple(vars(x).values())`. Not where a field is a record itself, which `asdict` takes apart as well, nor where
the copy is written to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.fields import fields_of
from explainer.source.value.lineage import changes, scope_of, statements_of
from explainer.source.value.resolve import resolver_of

_FORMS = {"dataclasses.asdict": "vars({})", "dataclasses.astuple": "tuple(vars({}).values())"}
_WHY = "copies the values of all fields deeply, and what an operation made cannot be copied"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such call in the statement that raised."""
    for file, statement in raised_at(context):
        names = context.program.names(file)
        for node in walk(statement):
            called = names.qualified(node.func) or "" if isinstance(node, ast.Call) else ""
            if not isinstance(node, ast.Call) or called not in _FORMS or len(node.args) != 1 or node.keywords:
                continue
            if _is_flat(node.args[0], file, context.program) and not _is_written(
                node, statement, file, context.program
            ):
                text = _FORMS[called].format(file.segment(node.args[0]))
                yield Proposal(edits=(edit_of(file, node, text),), culprit=culprit_of(file, node, _WHY), belief=2.5)


def _is_flat(record: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether the class of a record is known, keeps a dictionary of its fields, and none of these is a record or a container."""
    resolver = resolver_of(program)
    own = program.names(file).class_of(record) if isinstance(record, ast.Name) and record.id == "self" else None
    found = [(file, own)] if own is not None else resolver.classes_of(Value(record, file))
    return bool(found) and all(_has_plain_fields(owner, where, program) for where, owner in found)


def _has_plain_fields(owner: ast.ClassDef, file: SourceFile, program: Program) -> bool:
    names = program.names(file)
    marks = [one for one in owner.decorator_list if isinstance(one, ast.Call)]
    if any(one.arg == "slots" for mark in marks for one in mark.keywords) or not fields_of(owner, names):
        return False
    kinds = [one.annotation for one in owner.body if isinstance(one, ast.AnnAssign)]
    words = {node.id for kind in kinds for node in walk(kind) if isinstance(node, ast.Name)}
    return not any(program.find_class(word) for word in words) and not words & {"list", "dict", "List", "Dict"}


def _is_written(node: ast.Call, statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether the copy gets a name and is changed: that would change the record."""
    if not isinstance(statement, ast.Assign) or statement.value is not node:
        return False
    bound = {dotted_name(one) for one in statement.targets}
    scope = scope_of(statement, file, program)
    return scope is None or any(bound & changes(one) for one in statements_of(scope))
