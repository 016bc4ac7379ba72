"""The column that holds the labels under another name gets the model's: `eval_dataset=rows.rename_column("kind", "labels")`.

Which column that is its values have told where the program failed. It is renamed where a Trainer is given the data set, so that
whatever else reads the column by its name still finds it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.rewrite import put_method
from explainer.model.incident import LABEL_COLUMN
from explainer.model.patch import Edit
from explainer.source.data.column import columns_named, trainer_calls
from explainer.source.file import SourceFile
from explainer.source.program import Program

_TOLD = re.compile(r"(train_dataset|eval_dataset): ([^,]+?) -> (\w+)")
_PLACES = {"train_dataset": 3, "eval_dataset": 4}  # among the Trainer's arguments
_RENAMED = (ast.Call, ast.Name, ast.Attribute, ast.Subscript)
Given = tuple[SourceFile, ast.expr]


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for the sets of each Trainer that lack labels."""
    fact = context.incident.fact(LABEL_COLUMN)
    told = [one.groups() for one in _TOLD.finditer(fact.value)] if fact is not None else []
    for file, call in trainer_calls(context.program) if told else ():
        given = [(column, new, _given(call, where)) for where, column, new in told]
        places = [(column, new, node) for column, new, node in given if isinstance(node, _RENAMED)]
        if len(places) == len(given):
            edits = tuple(_renamed(file, node, column, new) for column, new, node in places)
            column, new, node = places[0]
            where, name = _named(column, file, node, context.program)
            why = f'calls "{new}" by a name that the model does not take'
            yield Proposal(edits=edits, culprit=culprit_of(where, name, why), belief=2.0)


def _given(call: ast.Call, argument: str) -> ast.expr | None:
    """What a Trainer gets as one of its data sets."""
    at = _PLACES[argument]
    named = next((one.value for one in call.keywords if one.arg == argument), None)
    return named if named is not None else call.args[at] if len(call.args) > at else None


def _renamed(file: SourceFile, node: ast.expr, column: str, new: str) -> Edit:
    quote = "'" if file.text.count("'") > file.text.count('"') else '"'
    return put_method(file, node, f".rename_column({quote}{column}{quote}, {quote}{new}{quote})")


def _named(column: str, file: SourceFile, given: ast.expr, program: Program) -> tuple[SourceFile, ast.AST]:
    """Where the program names the column; where it comes from elsewhere, what the Trainer is given."""
    return next(columns_named(column, program), (file, given))
