"""Points at where the table of a refused index is made: the embedding whose rows the index leaves. No edit.

Whether the table is too small or the index wrong is in the data; both are to be seen from the line that sets the size.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_TABLES = ("torch.nn.Embedding", "torch.nn.EmbeddingBag")


def propose(context: Context) -> Iterator[Proposal]:
    """The constructor of the one embedding that the failing line looks up; none where it looks up several."""
    resolver = resolver_of(context.program)
    for file, statement in list(raised_at(context))[:1]:
        made = {
            one.node: one
            for call in walk(statement)
            if isinstance(call, ast.Call)
            for one in resolver.constructors_of(Value(call.func, file))
            if isinstance(one.node, ast.Call)
            and context.program.names(one.file).is_call(one.node, *_TABLES)
            and one.node is not call
        }
        for one in made.values() if len(made) == 1 else ():
            assert isinstance(one.node, ast.Call)
            first = next(iter(one.node.args), None) or one.node.keywords[0].value
            why = f"makes the table with `{one.file.segment(first)}` rows, which the index leaves"
            yield Proposal(edits=(), culprit=culprit_of(one.file, one.node, why), belief=0.5)
