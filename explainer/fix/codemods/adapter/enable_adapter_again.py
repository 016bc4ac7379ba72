"""A function that switches a model's adapters off for a reference switches them on again before it returns.

    model.disable_adapter_layers()
    ...
    model.enable_adapter_layers()   # new
    return margins

Only where nothing in the program does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, insert_before
from explainer.source.value.binding import find_calls, walk_scope

_OFF, _ON = "disable_adapter_layers", "enable_adapter_layers"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each function that leaves adapters off."""
    if not context.has_failed:
        return
    calls = list(find_calls(context.program))
    if any(getattr(call.func, "attr", "") == _ON for _, call in calls):
        return
    for file, call in calls:
        function = context.program.names(file).function_of(call)
        statement = file.parents.get(call)
        if not isinstance(call.func, ast.Attribute) or call.func.attr != _OFF or function is None:
            continue
        if not isinstance(statement, ast.Expr) or file.parents.get(statement) is not function:
            continue
        new = f"{file.segment(call.func.value)}.{_ON}()"
        ends = [one for one in walk_scope(function) if isinstance(one, ast.Return) and one.lineno > call.lineno]
        edits = [insert_before(file, one, new) for one in ends]
        if not isinstance(function.body[-1], ast.Return):
            edits.append(insert_after(file, function.body[-1], new))
        yield Proposal(
            edits=tuple(edits),
            culprit=culprit_of(file, call, "switches the adapters off, and nothing switches them on again"),
            belief=2.5,
        )
