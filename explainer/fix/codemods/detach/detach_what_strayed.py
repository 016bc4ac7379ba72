"""`D(fake)` becomes `D(fake.detach())` in the function that makes a loss, where a trace saw it go back through what another one trains.

Whatever calls that function: a table of losses, a phase object that goes back and steps for any of them. The gradient that the first
loss left in the other network was thrown away, so that only the graph it used up is missed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.trace import STRAYED
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.tree import walk

_WHY = "sends this loss back through what made `{name}` as well, which the next loss trains"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all names that such a function gives to calls; none where the failing line stands in the same function."""
    if not context.has_failed:
        return
    runs = {one.function for one in context.frames if one.library is None}
    found: list[tuple[SourceFile, ast.expr]] = []
    for line, file, statement in traced_statements(STRAYED, context):
        function = context.program.names(file).function_of(statement)
        if function is not None and function.name not in runs:
            found += [(file, one) for one in _given(line.operation, function, file)]
    if found:
        file, first = found[0]
        yield Proposal(
            edits=tuple(put_method(where, one, ".detach()") for where, one in found),
            culprit=culprit_of(file, first, _WHY.format(name=file.segment(first))),
            belief=2.4,
        )


def _given(name: str, function: Function, file: SourceFile) -> list[ast.expr]:
    """Where a function gives a value of that name to a call."""
    found: list[ast.expr] = [
        node
        for node in walk(function)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and ast.unparse(node) == name
    ]
    calls = [one for one in found if isinstance(above := file.parents.get(one), ast.Call) and one in above.args]
    return calls if len(calls) == len(found) else []
