"""`self.month(codes[:, 0])` becomes `self.month(codes[:, 0] - 1)` where the codes go from 1 to n and the table has rows 0 to n-1.

Where 0 is in use besides, as padding, the table gets one more row. Only where the source shows both the codes and the rows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand
from explainer.model.trace import EDGES
from explainer.source.data.bins import has_a_row_too_few
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.integer import Span, integer_of, span_of
from explainer.source.value.lookup import Lookup, lookup_at


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all lookups of the line that raised whose codes count from 1."""
    program = context.program
    if not context.has_failed:
        return
    is_edge = any(line.saved == EDGES for line in context.incident.traced)
    for file, statement in list(raised_at(context))[:1]:
        lookups = [one for node in walk(statement) if (one := lookup_at(node, file, program)) is not None]
        shifted = [one for one in lookups if _counts_from(one, 1, program) and not _pads(one)]
        together = [other for one in shifted for other in _of_one_table(one, program)]
        if shifted and all(_counts_from(one, 1, program) for one in together):
            chosen = {one.index: one for one in (*shifted, *together)}.values()
            first = shifted[0]
            last = integer_of(Value(first.rows, first.made.file, first.made.arguments), program)
            yield Proposal(
                edits=tuple(edit_of(one.file, one.index, f"{operand(one.file, one.index)} - 1") for one in chosen),
                culprit=culprit_of(
                    first.file, first.node, f"looks up codes from 1 to {last} in rows 0 to {(last or 1) - 1}"
                ),
                belief=2.0,
                applicability="safe",
                because="row 0 is the first code's; a state dict that was saved with codes from 1 has its rows one further on",
                title="Count from 0 where the table is looked up: `table(month - 1)`",
            )
        for one in lookups:
            if one not in shifted and (_counts_from(one, 0, program) or (_pads(one) and _counts_from(one, 1, program))):
                yield _with_one_more(one)
            elif is_edge or has_a_row_too_few(Value(one.index, one.file), replace(one.made, node=one.rows), program):
                yield replace(
                    _with_one_more(one),
                    culprit=culprit_of(one.made.file, one.made.node, "has one row too few: n edges make n + 1 buckets"),
                    title="Give the table a row for the bucket behind the last edge: `nn.Embedding(len(edges) + 1, width)`",
                )


def _with_one_more(one: Lookup) -> Proposal:
    """One more row, for the padding that counts beside the codes, or for the bucket behind the last edge."""
    file = one.made.file
    number = one.rows.value if isinstance(one.rows, ast.Constant) else None
    text = str(number + 1) if isinstance(number, int) else f"{operand(file, one.rows)} + 1"
    return Proposal(
        edits=(edit_of(file, one.rows, text),),
        culprit=culprit_of(file, one.made.node, "has one row too few: 0 is in use, and so is the number of rows"),
        belief=1.6,
        applicability="unsafe",
        because="changes the number of parameters, so that older state dicts no longer fit",
        title="Give the table a row for the padding too: `nn.Embedding(items + 1, width, padding_idx=0)`",
    )


def _counts_from(one: Lookup, first: int, program: Program) -> bool:
    """Whether the codes go from `first` to the number of rows, which is one too far."""
    rows = integer_of(Value(one.rows, one.made.file, one.made.arguments), program)
    return rows is not None and span_of(Value(one.index, one.file), program) == Span(first, rows)


def _pads(one: Lookup) -> bool:
    """Whether the table keeps a row for padding."""
    assert isinstance(one.made.node, ast.Call)
    return any(
        word.arg == "padding_idx" and not (isinstance(word.value, ast.Constant) and word.value.value is None)
        for word in one.made.node.keywords
    )


def _of_one_table(one: Lookup, program: Program) -> Iterator[Lookup]:
    """The other lookups of the same table: they have to agree on where the codes begin."""
    name = dotted_name(one.table)
    for file in program.parsed():
        for node in file.walk():
            table = node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Subscript) else None
            if table is None or (dotted_name(table) or "").rpartition(".")[2] != (name or "").rpartition(".")[2]:
                continue
            other = lookup_at(node, file, program)
            if other is not None and other.made.node is one.made.node and other.node is not one.node:
                yield other
