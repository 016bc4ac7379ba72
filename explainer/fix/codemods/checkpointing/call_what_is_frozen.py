"""A segment that records no graph on purpose is called plainly: `self.look(h)` for `checkpoint(self.look, h)`.

The target branch of BYOL, or a teacher, runs under `no_grad` on weights that are frozen. A reentrant checkpoint promises a gradient for
what it is given, and has none to give. Only where every layer that the function runs is frozen by its flags: one that trains would rather
lose the decorator.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.graph.uncheckpoint import checkpoint_calls, plain_call
from explainer.source.file import SourceFile
from explainer.source.graph.cut import GRAD_MODE_OFF
from explainer.source.name import Function, dotted_name
from explainer.source.network.freeze import find_freezes
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.callee import callees_of

_SAID = "none of output has requires_grad=True"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all segments whose function is decorated so, and runs what is frozen."""
    if _SAID not in message_of(context):
        return
    program = context.program
    found = [
        (file, call, one.function)
        for file, call in checkpoint_calls(program)
        for one in callees_of(call.args[0], file, program)
        if isinstance(one.function, (ast.FunctionDef, ast.AsyncFunctionDef))
        and _records_nothing(one.function, one.file, program)
        and _is_frozen(one.function, one.file, program)
    ]
    if found:
        file, call, function = found[0]
        edits = dict.fromkeys(edit for where, one, _ in found for edit in plain_call(where, one))
        if len(found) < sum(1 for _ in checkpoint_calls(program)):
            edits = {edit: None for edit in edits if edit.new}  # the import has another reader
        yield Proposal(
            edits=tuple(edits),
            culprit=culprit_of(file, call, f"checkpoints `{function.name}`, which records no graph: there is nothing to compute again"),
            belief=2.5,
            title=f"Call `{function.name}` plainly: it keeps nothing for a backward",
        )  # fmt: skip


def _records_nothing(function: Function, file: SourceFile, program: Program) -> bool:
    called = [one.func if isinstance(one, ast.Call) else one for one in function.decorator_list]
    return any(program.names(file).qualified(one) in GRAD_MODE_OFF for one in called)


def _is_frozen(function: Function, file: SourceFile, program: Program) -> bool:
    """Whether all that a method calls of its object are modules which the program freezes as a whole."""
    frozen = {
        dotted_name(one.owner)
        for one in find_freezes(program)
        if not one.is_on and one.test is None and one.file is file
    }
    called = {
        name
        for one in walk(function)
        if isinstance(one, ast.Call) and (name := dotted_name(one.func) or "").startswith("self.")
    }
    return bool(called) and called <= frozen
