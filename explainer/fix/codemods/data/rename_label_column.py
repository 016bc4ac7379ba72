"""The column that holds the labels under another name gets the model's: `eval_dataset=rows.rename_column("kind", "labels")`.

Which column that is its values have told where the program failed. It gets the name where it is made, if the program names it
nowhere else and all sets of the Trainer lack labels; else where a Trainer is given the data set, so that whatever else reads the
column by its name still finds it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.incident import LABEL_COLUMN
from explainer.model.patch import Edit
from explainer.source.data.column import columns_named, trainer_calls
from explainer.source.file import SourceFile
from explainer.source.program import Program

_TOLD = re.compile(r"(train_dataset|eval_dataset): ([^,]+?) -> (\w+)")
_PLACES = {"train_dataset": 3, "eval_dataset": 4}  # among the Trainer's arguments
_INPUTS = ("input_ids", "pixel_values", "input_values", "input_features")
_WHERE_MADE = 'Give the column that holds the labels their name where it is made: `row["labels"] = ids`'
_RENAMED = (ast.Call, ast.Name, ast.Attribute, ast.Subscript)
Given = tuple[SourceFile, ast.expr]


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for the sets of each Trainer that lack labels."""
    fact = context.incident.fact(LABEL_COLUMN)
    told = [one.groups() for one in _TOLD.finditer(fact.value)] if fact is not None else []
    if context.fields.get("column") in {column for _, column, _ in told}:
        return  # the failure asks for the column by its own name
    for file, call in trainer_calls(context.program) if told else ():
        given = [(column, new, _given(call, where)) for where, column, new in told]
        places = [(column, new, node) for column, new, node in given if isinstance(node, _RENAMED)]
        if len(places) == len(given):
            edits = tuple(_renamed(file, node, column, new) for column, new, node in places)
            column, new, node = places[0]
            where, name = _named(column, file, node, context.program)
            why = f'calls "{new}" by a name that the model does not take'
            yield Proposal(edits=edits, culprit=culprit_of(where, name, why), belief=2.0)
            made = _made(column, context.program) if {one for _, one, _ in told} == {column} else None
            if made is not None and {one for one, _, _ in told} == {"train_dataset", *_sets(call)}:
                edit = edit_of(*made, f"{made[0].segment(made[1])[0]}{new}{made[0].segment(made[1])[-1]}")
                yield Proposal(edits=(edit,), culprit=culprit_of(*made, why), belief=2.1, title=_WHERE_MADE)


def _sets(call: ast.Call) -> set[str]:
    """The data sets that a Trainer is given."""
    return {one for one in _PLACES if _given(call, one) is not None}


def _made(column: str, program: Program) -> tuple[SourceFile, ast.Constant] | None:
    """The one place in which the program names a column: a key that is written, or that of a row beside a model's input."""
    found = [(file, node) for file in program.parsed() for node in file.walk() if _says(node, column)]
    is_configured = any(column in one.text for one in program.texts)
    if is_configured or len(found) != 1 or not isinstance(found[0][1], ast.Constant):
        return None
    file, node = found[0][0], found[0][1]
    above = file.parents.get(node)
    is_key = isinstance(above, ast.Subscript) and isinstance(above.ctx, ast.Store)
    row = above.keys if isinstance(above, ast.Dict) and node in above.keys else []
    is_key = is_key or any(isinstance(one, ast.Constant) and one.value in _INPUTS for one in row)
    return (file, node) if is_key and file.segment(node)[0] in "'\"" else None


def _says(node: ast.AST, column: str) -> bool:
    """Whether a word, an attribute or a keyword is the column's name, or a text has it in it."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and re.search(rf"\b{re.escape(column)}\b", node.value) is not None
    name = node.attr if isinstance(node, ast.Attribute) else node.arg if isinstance(node, ast.keyword) else None
    return name == column


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
