"""Gives an overriding method the parameter that its base class got: `def compute_loss(..., num_items_in_batch=None)`.

Only where the table of the libraries' interfaces knows that the base class passes it. An override that calls the method of its base
hands it on there. A message that only counts arguments (`takes 3 positional arguments but 4 were given`) names none: there the
base's method has got one parameter that the override lacks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.base_call import calls_of_base
from explainer.fix.text.rewrite import add_argument
from explainer.model.interface import Change
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function

# The methods whose new argument transformers' Trainer gives by its place: how many an override took before, and the new one.
_BY_PLACE = {
    "training_step": (3, "num_items_in_batch"),
    "log": (2, "start_time"),
    "_get_train_sampler": (1, "train_dataset"),
}


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the method that the message names."""
    parts = [part for part in str(context.fields.get("callee", "")).split(".") if part != "<locals>"]
    argument = str(context.fields.get("argument", ""))
    found = context.program.find_class(parts[-2]) if len(parts) > 1 else None
    if found is None:
        return
    file, owner = found
    for node in owner.body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name != parts[-1]:
            continue
        for name in [argument] if argument.isidentifier() else _counted(node, context):
            change = _change(context, owner, node.name, name)
            if change is not None:
                yield from _widened(file, node, name, change)


def _counted(node: Function, context: Context) -> list[str]:
    """The parameter that a library gives by its place, one more than an override of the form before takes."""
    taken, given = (str(context.fields.get(one, "")) for one in ("taken", "given"))
    older = _BY_PLACE.get(node.name)
    if older is None or not (taken.isdigit() and given.isdigit()) or int(given) != int(taken) + 1:
        return []
    return [older[1]] if len(node.args.args) == older[0] == int(taken) else []


def _change(context: Context, owner: ast.ClassDef, method: str, argument: str) -> Change | None:
    bases = [ast.unparse(base).rpartition(".")[2] for base in owner.bases]
    for base in [*bases, "Trainer"]:
        for one in context.changes(f"{base}.{method}", argument):
            if one.new_place[1] == argument and one.kind == "argument":
                return one
    return None


def _handed_on(file: SourceFile, node: Function, argument: str) -> Iterator[Edit]:
    """The edits that give the new argument to the base class's method where the override calls it."""
    for call in calls_of_base(node):
        is_open = any(isinstance(one, ast.Starred) for one in call.args) or any(not one.arg for one in call.keywords)
        if not is_open and all(one.arg != argument for one in call.keywords):
            yield add_argument(file, call, f"{argument}={argument}")


def _widened(file: SourceFile, node: Function, argument: str, change: Change | None) -> Iterator[Proposal]:
    arguments = node.args
    if arguments.kwarg is not None or arguments.vararg is not None:
        return
    given = [
        *arguments.args,
        *arguments.kwonlyargs,
        *arguments.defaults,
        *(one for one in arguments.kw_defaults if one),
    ]
    end = max((file.span(one)[1] for one in given), default=None)
    if end is None or any(getattr(one, "arg", None) == argument for one in given):
        return
    yield Proposal(
        edits=(
            Edit(file=file.path, start=end, end=end, new=f", {argument}=None"),
            *_handed_on(file, node, argument),
        ),
        culprit=culprit_of(file, node, f"overrides the method without its parameter `{argument}`"),
        belief=2.0,
        because=change.note if change is not None else None,
    )
