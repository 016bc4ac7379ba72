"""`self.month(codes[:, 0])` becomes `self.month(codes[:, 0] - 1)` where the codes go from 1 to n and the table has rows 0 to n-1.

Where 0 is in use besides, as padding, the table gets one more row. Only where the source shows both the codes and the rows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.crash import raised_at
from explainer.fix.rewrite import operand
from explainer.source.binding import Value
from explainer.source.bins import has_a_row_too_few
from explainer.source.file import SourceFile
from explainer.source.integer import Span, integer_of, span_of
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.resolve import resolver_of
from explainer.source.tree import walk

_TABLES = ("torch.nn.Embedding", "torch.nn.EmbeddingBag")
_ONE_HOT = "torch.nn.functional.one_hot"
_MAKERS = ("torch.zeros", "torch.randn", "torch.empty", "torch.ones", "torch.rand")


@dataclass(frozen=True, slots=True)
class _Lookup:
    """One lookup: its index, and where the table is made, with the expression that says how many rows."""

    file: SourceFile
    node: ast.expr
    table: ast.expr
    index: ast.expr
    made: Value
    rows: ast.expr


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all lookups of the line that raised whose codes count from 1."""
    program = context.program
    if not context.has_failed:
        return
    for file, statement in list(raised_at(context))[:1]:
        lookups = [one for node in walk(statement) if (one := _lookup(node, file, program)) is not None]
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
            elif has_a_row_too_few(Value(one.index, one.file), replace(one.made, node=one.rows), program):
                yield replace(
                    _with_one_more(one),
                    culprit=culprit_of(one.made.file, one.made.node, "has one row too few: n edges make n + 1 buckets"),
                    title="Give the table a row for the bucket behind the last edge: `nn.Embedding(len(edges) + 1, width)`",
                )


def _with_one_more(one: _Lookup) -> Proposal:
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


def _lookup(node: ast.AST, file: SourceFile, program: Program) -> _Lookup | None:
    """A call of an embedding, or rows taken of a parameter: with the one place that makes the table."""
    if isinstance(node, ast.Call) and program.names(file).is_call(node, _ONE_HOT):
        rows = next((one.value for one in node.keywords if one.arg == "num_classes"), None)
        rows = rows or (node.args[1] if len(node.args) > 1 else None)
        return _Lookup(file, node, node.func, node.args[0], Value(node, file), rows) if rows and node.args else None
    if isinstance(node, ast.Call) and len(node.args) >= 1 and not isinstance(node.args[0], ast.Starred):
        table, index = node.func, node.args[0]
    elif isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Slice, ast.Tuple, ast.Constant)):
        table, index = node.value, node.slice
    else:
        return None
    made = [one for one in resolver_of(program).constructors_of(Value(table, file)) if one.node is not node]
    found = {one.node: (one, rows) for one in made if (rows := _rows(one, program, isinstance(node, ast.Call)))}
    if len(found) != 1 or len({one.node for one in made}) != 1:
        return None
    (where, rows) = next(iter(found.values()))
    return _Lookup(file, node, table, index, where, rows)


def _rows(made: Value, program: Program, is_called: bool) -> ast.expr | None:  # noqa: FBT001
    """The number of rows as the table's constructor is given it."""
    call, names = made.node, program.names(made.file)
    if not isinstance(call, ast.Call):
        return None
    if is_called:
        given = next((one.value for one in call.keywords if one.arg == "num_embeddings"), None)
        return (given or next(iter(call.args), None)) if names.is_call(call, *_TABLES) else None
    if names.is_call(call, "torch.nn.Parameter", "torch.nn.parameter.Parameter") and call.args:
        inner = next((one for one in walk(call.args[0]) if names.is_call(one, *_MAKERS)), None)
        call = inner if isinstance(inner, ast.Call) else call
    return call.args[0] if names.is_call(call, *_MAKERS) and call.args else None


def _counts_from(one: _Lookup, first: int, program: Program) -> bool:
    """Whether the codes go from `first` to the number of rows, which is one too far."""
    rows = integer_of(Value(one.rows, one.made.file, one.made.arguments), program)
    return rows is not None and span_of(Value(one.index, one.file), program) == Span(first, rows)


def _pads(one: _Lookup) -> bool:
    """Whether the table keeps a row for padding."""
    assert isinstance(one.made.node, ast.Call)
    return any(
        word.arg == "padding_idx" and not (isinstance(word.value, ast.Constant) and word.value.value is None)
        for word in one.made.node.keywords
    )


def _of_one_table(one: _Lookup, program: Program) -> Iterator[_Lookup]:
    """The other lookups of the same table: they have to agree on where the codes begin."""
    name = dotted_name(one.table)
    for file in program.parsed():
        for node in file.walk():
            table = node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Subscript) else None
            if table is None or (dotted_name(table) or "").rpartition(".")[2] != (name or "").rpartition(".")[2]:
                continue
            other = _lookup(node, file, program)
            if other is not None and other.made.node is one.made.node and other.node is not one.node:
                yield other
