"""An optimizer is given the parameters of a module instead of the module: `optim.SGD(model, ...)`, `model.named_parameters()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.network.module import is_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value

_LISTS = frozenset({"named_parameters", "state_dict", "modules", "children"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the constructor of an optimizer that raised."""
    for file, statement in raised_at(context):
        names = context.program.names(file)
        for node in walk(statement):
            called = (names.qualified(node.func) or "") if isinstance(node, ast.Call) else ""
            if not isinstance(node, ast.Call) or not called.startswith("torch.optim."):
                continue
            given = (
                node.args[0] if node.args else next((one.value for one in node.keywords if one.arg == "params"), None)
            )
            edit = _edit(given, file, context.program) if given is not None else None
            if given is not None and edit is not None:
                why = f"gives the optimizer `{file.segment(given)}`, which is no list of parameters"
                yield Proposal(edits=(edit,), culprit=culprit_of(file, given, why), belief=2.0)


def _edit(given: ast.expr, file: SourceFile, program: Program) -> Edit | None:
    if (
        isinstance(given, ast.Call)
        and isinstance(given.func, ast.Attribute)
        and given.func.attr in _LISTS
        and not given.args
    ):
        return edit_of(file, given, f"{file.segment(given.func.value)}.parameters()")
    return put_method(file, given, ".parameters()") if is_module(Value(given, file), program) else None
