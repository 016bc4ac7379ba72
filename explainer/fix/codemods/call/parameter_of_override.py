"""Gives an overriding method the parameter that its base class got: `def compute_loss(..., num_items_in_batch=None)`.

Only where the table of the libraries' interfaces knows that the base class passes it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.interface import Change
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the method that the message names."""
    parts = [part for part in str(context.fields.get("callee", "")).split(".") if part != "<locals>"]
    argument = str(context.fields.get("argument", ""))
    if len(parts) < 2 or not argument.isidentifier():
        return
    found = context.program.find_class(parts[-2])
    if found is None:
        return
    file, owner = found
    change = _change(context, owner, parts[-1], argument)
    for node in owner.body if change is not None else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == parts[-1]:
            yield from _widened(file, node, argument, change)


def _change(context: Context, owner: ast.ClassDef, method: str, argument: str) -> Change | None:
    bases = [ast.unparse(base).rpartition(".")[2] for base in owner.bases]
    for base in [*bases, "Trainer"]:
        for one in context.changes(f"{base}.{method}", argument):
            if one.new_place[1] == argument and one.kind == "argument":
                return one
    return None


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
        edits=(Edit(file=file.path, start=end, end=end, new=f", {argument}=None"),),
        culprit=culprit_of(file, node, f"overrides the method without its parameter `{argument}`"),
        belief=2.0,
        because=change.note if change is not None else None,
    )
