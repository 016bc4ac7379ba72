"""`nn.Embedding(len(vocabulary) + 1, d)`: codes that begin at 1 leave 0 for padding or for what is unknown, and the last is `len`.

The one length of such a vocabulary is what counts the rows; of several the one that makes a table.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.data.vocabulary import Length, find_lengths
from explainer.source.program import Program

_TABLES = ("torch.nn.Embedding", "torch.nn.EmbeddingBag")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the length that gives a table too few rows."""
    if not context.has_failed:
        return
    lengths = list(find_lengths(context.program))
    right = {one.name for one in lengths if one.is_added_to}
    found = [one for one in lengths if one.name not in right]
    meant = [one for one in found if _makes_table(one, context.program)] or found
    if len(meant) != 1:
        return
    (one,) = meant
    yield Proposal(
        edits=(edit_of(one.file, one.node, f"{one.file.segment(one.node)} + 1"),),
        culprit=culprit_of(one.file, one.node, "counts the codes, which begin at 1, and not the row of 0"),
        belief=1.6,
    )


def _makes_table(one: Length, program: Program) -> bool:
    above = one.file.enclosing(one.node, ast.Call)
    return isinstance(above, ast.Call) and program.names(one.file).is_call(above, *_TABLES)
