"""`TrainingArguments(...)` gets `label_names=["defect", "severity"]`: the arguments of a model's own forward that its loss needs.

The Trainer takes for labels what has "label" in its name. Where nothing has, it trains by the loss that the model returns, and its
evaluation computes none: the best checkpoint cannot be chosen by it. Nor does it where `label_names=["label"]` names the column,
which the collator calls `labels` in the batch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.data.column import arguments_calls, trainer_calls
from explainer.source.name import Function
from explainer.source.tree import walk
from explainer.source.value.binding import Value, default_of, parameters_of
from explainer.source.value.resolve import resolver_of

_COLUMNS = ("label", "label_ids")
_UNKNOWN = ("'eval_loss'", "not found in the evaluation metrics")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the arguments of a Trainer whose model is of the program."""
    if not all(word in message_of(context) for word in _UNKNOWN):
        return
    yield from _named_as_the_column(context)
    labels = next((found for one in _forwards(context) if (found := _targets(one))), [])
    if not labels or any("label" in one for one in labels):
        return
    is_named = any("label_names" in one.text for one in context.program.files.values())
    for file in context.program.parsed() if not is_named else ():
        names = context.program.names(file)
        for node in file.walk():
            is_made = isinstance(node, ast.Call) and (names.qualified(node.func) or "").endswith("TrainingArguments")
            if not isinstance(node, ast.Call) or not is_made:
                continue
            said = ", ".join(f'"{one}"' for one in labels)
            yield Proposal(
                edits=(add_argument(file, node, f"label_names=[{said}]"),),
                culprit=culprit_of(file, node, f"leaves the Trainer without labels: {said} are not called so"),
                belief=2.0,
            )


def _named_as_the_column(context: Context) -> Iterator[Proposal]:
    """`label_names=["label"]`, with a model that takes `labels`."""
    taken = {name for one in _forwards(context) for name in parameters_of(one)}
    for file, call in arguments_calls(context.program):
        given = next((one.value for one in call.keywords if one.arg == "label_names"), None)
        named = [one for one in walk(given) if isinstance(one, ast.Constant)] if given is not None else []
        if len(named) == 1 and named[0].value in _COLUMNS and not taken & set(_COLUMNS):
            why = f'names the column "{named[0].value}", which is called "labels" in a batch'
            edit = edit_of(file, named[0], file.segment(named[0]).replace(str(named[0].value), "labels"))
            title = 'Name the labels as a batch calls them: `label_names=["labels"]`'
            yield Proposal(edits=(edit,), culprit=culprit_of(file, named[0], why), belief=2.0, title=title)


def _forwards(context: Context) -> Iterator[Function]:
    """The forward of each class of the program that a Trainer is given as its model."""
    for file, call in trainer_calls(context.program):
        given = [one.value for one in call.keywords if one.arg == "model"] or call.args[:1]
        for value in given:
            for where, owner in resolver_of(context.program).classes_of(Value(value, file)):
                method = resolver_of(context.program).method(owner, "forward", where)
                if method is not None:
                    yield method[1]


def _targets(forward: Function) -> list[str]:
    """The arguments that a forward can do without, and asks for before it computes a loss: `if defect is not None`."""
    optional = [
        one for one in parameters_of(forward)
        if isinstance(default := default_of(forward, one), ast.Constant) and default.value is None
    ]  # fmt: skip
    asked = {
        node.left.id
        for node in walk(forward)
        if isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Name)
        and isinstance(node.ops[0], (ast.Is, ast.IsNot))
    }
    return [one for one in optional if one in asked]
