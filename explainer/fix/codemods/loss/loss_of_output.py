"""Hands the criterion the model's output where it gets the model's input: `criterion(outputs, y)` for `criterion(inputs, y)`.

Only where the output has a name that nothing reads.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import backward_roots
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.value.binding import Bound, Value, bounds_of, scope_of, walk_scope
from explainer.source.value.provenance import provenance_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each output that is computed and dropped, where the loss is made of its input."""
    if not context.has_failed:
        return
    traces = [provenance_of(context.program).trace(root) for root in backward_roots(context)]
    if not traces or any(one.live or one.chains for one in traces):
        return
    for file in context.program.parsed():
        scopes = [file.tree, *context.program.names(file).functions]
        for scope in scopes:
            for bound in bounds_of(scope) if scope is not None else ():
                yield from _dropped(bound, file, context)


def _dropped(bound: Bound, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """An output that nothing reads, and the calls after it that take its input."""
    call = bound.node
    if bound.fills or bound.pick is not None or not isinstance(call, ast.Call) or not call.args:
        return
    scope = scope_of(call, file)
    names = [one for one in walk_scope(scope) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    given = dotted_name(call.args[0])
    if given is None or any(one.id == bound.name for one in names):
        return
    if not provenance_of(context.program).trace(Value(call, file)).live:
        return
    for one in names:
        above = file.parents.get(one)
        is_first = isinstance(above, ast.Call) and above is not call and above.args[:1] == [one]
        if (
            one.id == given
            and one.lineno > call.lineno
            and is_first
            and isinstance(above, ast.Call)
            and len(above.args) > 1
        ):
            yield Proposal(
                edits=(edit_of(file, one, bound.name),),
                culprit=culprit_of(
                    file, above, f"takes `{given}`, what the model was given; its output `{bound.name}` is dropped"
                ),
                belief=2.0,
            )
