"""Points at where an index comes from that a table has no row for, and at what the number of its rows was taken from. No edit.

Held-out data names what the training data did not; whether it is left out, shares a row, or gets one of its own is a choice. A row
of data that is a stranger among the others comes first, then the code that a lookup gives to strangers, or that a table of the
program's own has for it, then what was measured.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of
from explainer.source.data.code_table import find_codes
from explainer.source.data.stranger import Strangers, find_strangers
from explainer.source.file import SourceFile
from explainer.source.loss.loss import loss_at
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.integer import integer_of
from explainer.source.value.lookup import Lookup, lookup_at
from explainer.source.value.measured import COUNT, HIGHEST, WRITTEN, Measure, measure_of

_REFUSED = re.compile(r"(-?\d+) of (\d+), from (-?\d+)")
# Strangers that are no more than this, or this share, are a fault of the data rather than of what was measured.
_FEW_ROWS, _FEW = 3, 0.1
_LAYERS = {
    "torch.nn.Linear": 1, "torch.nn.LazyLinear": 0, "torch.nn.Conv1d": 1, "torch.nn.Conv2d": 1, "torch.nn.Bilinear": 2,
}  # fmt: skip
_OUTPUTS = ("out_features", "out_channels")
_CLASSES = ("num_labels", "num_classes", "n_classes")
_ROWS = ("vocab_size", "num_embeddings")
_BESIDE = 2  # rows that a table may have beside those of a setting
# What makes integers that no data holds; a buffer of zeros may be filled with some.
_COUNTERS = frozenset({"arange", "randint", "randperm", "linspace"})


def propose(context: Context) -> Iterator[Proposal]:
    """The lines, where an index beyond the rows was refused, and no operation of the program made it of one that is allowed."""
    given = _given(context)
    if given is None or _is_made(context):
        return
    index, rows, lowest = given
    statement = next(iter(raised_at(context)), None)
    if statement is None or index < rows:
        return
    is_loss = any(
        isinstance(one, ast.Call) and _takes_classes(one, statement[0], context.program) for one in walk(statement[1])
    )
    measure = _measure(statement, rows, context, is_loss=is_loss)
    strangers = find_strangers(rows, index, context.program, is_table=not is_loss)
    # A code just behind the last is one of codes that count from 1, unless there is a 0, or it was measured that there is none.
    is_sure = index > rows or lowest == 0 or (measure is not None and measure.kind == HIGHEST)
    if strangers is not None:
        is_few = len(strangers.cells) <= _FEW_ROWS or strangers.share <= _FEW
        # Held-out data may well name what is new, where the rows of a table were counted; a class is on a list.
        is_fault = is_few and (is_loss or measure is None or measure.kind == WRITTEN)
        things = f"{rows} {'classes' if is_loss else 'rows'}"
        yield from _of_data(strangers, things, belief=2.2 if is_fault else 0.9, is_origin=is_fault)
    yield from _of_strangers(index, rows, measure, context.program)
    yield from _of_table(index, rows, context.program, is_loss=is_loss)
    if measure is not None:
        yield _of_size(measure, index, rows, is_sure=is_sure)


def _given(context: Context) -> tuple[int, int, int | None] | None:
    """The index that was refused, the rows or classes, and the lowest index beside it; None where they are not known."""
    live = context.incident.fact("live_refused_index")
    found = _REFUSED.fullmatch(live.value) if live is not None else None
    if found is not None:
        return int(found[1]), int(found[2]), int(found[3])
    index, rows = context.fields.get("index"), context.fields.get("rows")
    return (int(str(index)), int(str(rows)), None) if index is not None and rows is not None else None


def _is_made(context: Context) -> bool:
    """Whether a trace saw that the program's own operations made the index, of allowed ones or of none."""
    facts = context.incident.facts
    return any(
        one.name == "traced_turned_index" or (one.name == "traced_index" and one.value in _COUNTERS) for one in facts
    )


def _takes_classes(node: ast.Call, file: SourceFile, program: Program) -> bool:
    loss = loss_at(node, file, program)
    return loss is not None and loss.takes_classes


def _measure(at: tuple[SourceFile, ast.stmt], rows: int, context: Context, *, is_loss: bool) -> Measure | None:
    """What the size of the table was taken from that the failing line looks up, else of the one that the program sizes so."""
    file, statement = at
    program = context.program
    lookups = (
        [] if is_loss else [one for node in walk(statement) if (one := lookup_at(node, file, program)) is not None]
    )
    sizes = [Value(one.rows, one.made.file, one.made.arguments) for one in _marked(lookups, context)]
    sizes = sizes or list(_sizes(program, is_loss=is_loss))
    known = {id(one.node): integer_of(one, program) for one in sizes}
    found = [measure_of(one, program) for one in sizes if known[id(one.node)] in (None, rows)]
    fitting = [one for one in found if one is not None and abs((one.number or rows) - rows) <= _BESIDE]
    places = {(one.file.path, one.span): one for one in fitting}
    return next(iter(places.values())) if len(places) == 1 else None


def _marked(lookups: list[Lookup], context: Context) -> list[Lookup]:
    """Of several lookups in a line those at which Python pointed, where it did."""
    frame = context.frames[-1] if context.frames else None
    pointed = frame.code[slice(*frame.mark)] if frame is not None and frame.code and frame.mark else ""
    return [one for one in lookups if one.file.segment(one.node) in pointed] or lookups


def _sizes(program: Program, *, is_loss: bool) -> Iterator[Value]:
    """The numbers of classes, or of rows, that the program gives to layers and configurations."""
    for file in program.parsed():
        names = program.names(file)
        for call in (node for node in file.walk() if isinstance(node, ast.Call)):
            called = names.qualified(call.func) or ""
            wanted = (*_CLASSES, *(_OUTPUTS if called in _LAYERS else ())) if is_loss else _ROWS
            given = [one.value for one in call.keywords if one.arg in wanted]
            if is_loss and not given and _LAYERS.get(called, len(call.args)) < len(call.args):
                given = [call.args[_LAYERS[called]]]
            yield from (Value(one, file) for one in given)


def _of_data(found: Strangers, things: str, *, belief: float, is_origin: bool) -> Iterator[Proposal]:
    """The rows of data, of which a report holds the cell and no more."""
    lines = list({one.line: one for one in found.cells}.values())
    for number, one in enumerate(lines[:2]):
        more = f", as in {len(lines) - 1} more" if number == 0 and len(lines) > 1 else ""
        what = f"none of those that the {things} are for" if found.is_name else f"beyond the last of the {things}"
        start = found.file.line_start(one.line)
        why = f"holds `{one.text[:60]}` in the column `{found.key}`, {what}{more}"
        culprit = replace(culprit_at(found.file, (start, start + 1), why), code="", mark=None, before=(), after=())
        yield Proposal(edits=(), culprit=culprit, belief=belief - 0.1 * number, is_origin=is_origin)


def _of_strangers(index: int, rows: int, measure: Measure | None, program: Program) -> Iterator[Proposal]:
    """`codes.get(name, len(codes))`: the code behind the last, for what is not in a dictionary whose length the rows are."""
    if index != rows or measure is None or measure.kind != COUNT:
        return
    measured = measure.of.rpartition(".")[2]
    for file in program.parsed():
        for node in file.walk():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or len(node.args) != 2:
                continue
            default, held = node.args[1], (dotted_name(node.func.value) or "").rpartition(".")[2]
            is_length = isinstance(default, ast.Call) and dotted_name(default.func) == "len" and len(default.args) == 1
            if node.func.attr == "get" and is_length and held == measured:
                why = f"gives what is not in `{held}` the code {index}, for which there is no row"
                yield Proposal(edits=(), culprit=culprit_of(file, node, why), belief=1.3, is_origin=True)


def _of_table(index: int, rows: int, program: Program, *, is_loss: bool) -> Iterator[Proposal]:
    """The entry of the one table of codes in which the index stands: whether what it numbers counts is a choice."""
    found = find_codes(index, program)
    if len(found) == 1:
        (one,) = found
        why = f"gives `{one.file.segment(one.key)}` the code {index}, and there are {rows} {'classes' if is_loss else 'rows'}"
        culprit = culprit_at(one.file, (one.file.span(one.key)[0], one.file.span(one.value)[1]), why)
        yield Proposal(edits=(), culprit=culprit, belief=1.3, is_origin=True)


def _of_size(measure: Measure, index: int, rows: int, *, is_sure: bool) -> Proposal:
    said = {
        HIGHEST: f"makes {rows} rows for the highest of `{measure.of}`, and {index} is in other data",
        COUNT: f"makes {rows} rows for as many as `{measure.of}` has here, and is asked for {index}",
    }.get(measure.kind, f"makes {rows} rows, and the data holds {index}: `{measure.of}`")
    culprit = culprit_at(measure.file, measure.span, said)
    return Proposal(edits=(), culprit=culprit, belief=1.0 if is_sure else 0.3, is_origin=is_sure)
