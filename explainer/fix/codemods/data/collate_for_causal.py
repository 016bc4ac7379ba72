"""A causal language model gets its labels of the collator: `DataCollatorForLanguageModeling(tokenizer, mlm=False)`.

In the place of the one that only pads, by the word that chooses it out of a table, or where a Trainer is given none. Only where the
failed Trainer's data sets hold tokens alone: which of them are a prompt no column said.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of
from explainer.fix.setting.edit import set_value
from explainer.fix.text.import_line import imported
from explainer.fix.text.rewrite import add_argument
from explainer.model.incident import INPUTS_COLUMN
from explainer.model.patch import Edit
from explainer.source.data.column import trainer_calls
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.tree import walk
from explainer.source.value.registry import calls_out_of_tables, keys_of

_PADS = "DataCollatorWithPadding"
_LABELS = "DataCollatorForLanguageModeling"
_TOKENIZERS = ("processing_class", "tokenizer")
_WHY = "only pads the tokens: no labels are made of them"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the collator of each Trainer that gives a causal model no labels."""
    if context.incident.fact(INPUTS_COLUMN) is None:
        return
    program = context.program
    padding = [(file, call) for file in program.parsed() for call in _calls(file.tree, _PADS)]
    for file, call in padding:
        chosen = list(_chosen_elsewhere(file, call, program))
        yield from chosen
        if not chosen:
            name, edits = imported(file, "transformers", _LABELS)
            yield Proposal(
                edits=(edit_of(file, call.func, name), add_argument(file, call, "mlm=False"), *edits),
                culprit=culprit_of(file, call, _WHY),
                belief=2.0,
            )
    for file, call in trainer_calls(program) if not padding else ():
        given = {one.arg: one.value for one in call.keywords}
        tokenizer = next((given[one] for one in _TOKENIZERS if one in given), None)
        if tokenizer is None or "data_collator" in given or None in given or len(call.args) > 2:
            continue
        name, edits = imported(file, "transformers", _LABELS)
        made = f"data_collator={name}({file.segment(tokenizer)}, mlm=False)"
        yield Proposal(
            edits=(add_argument(file, call, made), *edits),
            culprit=culprit_of(file, call, "is given tokens alone, and no collator that makes labels of them"),
            belief=2.0,
        )


def _calls(node: ast.AST | None, name: str) -> Iterator[ast.Call]:
    for one in walk(node) if node is not None else ():
        if isinstance(one, ast.Call) and (dotted_name(one.func) or "").rpartition(".")[2] == name:
            yield one


def _chosen_elsewhere(file: SourceFile, call: ast.Call, program: Program) -> Iterator[Proposal]:
    """The word that chooses the padding collator out of a table, where one other entry of it makes labels for a causal model."""
    own = program.names(file).function_of(call)
    keys = keys_of(own, program) if own is not None else frozenset()
    others = {
        key
        for where, one in program.functions()
        if one is not own and where is file and _is_for_causal(one)
        for key in keys_of(one, program)
    }
    for where, lookup in calls_out_of_tables(own, program) if own is not None and len(others) == 1 else ():
        asked = lookup.func.slice if isinstance(lookup.func, ast.Subscript) else next(iter(lookup.args), None)
        for setting in settings_behind(asked, where, program) if asked is not None else ():
            edit = set_value(setting, next(iter(others))) if setting.value in keys else None
            if isinstance(edit, Edit):
                yield Proposal(
                    edits=(edit,),
                    culprit=culprit_at(setting.file, setting.span, f"chooses a collator that {_WHY}"),
                    belief=2.4,
                    title=f"Choose the collator that makes labels for a causal model: `{next(iter(others))}`",
                    is_origin=True,
                )


def _is_for_causal(function: Function) -> bool:
    """Whether a function makes the collator that takes the inputs for labels: `mlm=False`."""
    return any(
        one.arg == "mlm" and isinstance(one.value, ast.Constant) and one.value.value is False
        for call in _calls(function, _LABELS)
        for one in call.keywords
    )
