"""`x + self.table[: x.size(1)]` for `x + self.table[: x.size(0)]`: positions are as many as steps, not as samples.

Only where the sum was refused in the axis of the steps, for the number of samples that the count gave, and the program shows that the
batch stands first. So also `torch.arange(ids.size(0))` that a table of positions is looked up by.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.clue.seen_shape import REFUSED
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.recurrent import RECURRENT
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.layout import batch_axis
from explainer.source.value.lineage import definitions, scope_of
from explainer.source.value.number import number_of

_STACKS = (
    *RECURRENT, "torch.nn.TransformerEncoderLayer", "torch.nn.TransformerDecoderLayer", "torch.nn.MultiheadAttention",
    "torch.nn.Transformer",
)  # fmt: skip
_DEPTH = 3


@dataclass(frozen=True, slots=True)
class _Count:
    """A size that a range or a cut is as long as: the expression that reads it, of which tensor."""

    node: ast.expr
    of: ast.expr


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one count of samples on the way to the line that raised."""
    refused = REFUSED.search(message_of(context))
    if refused is None or refused[3] != "1":
        return
    sizes = {int(refused[1]), int(refused[2])}
    for file, statement in list(raised_at(context))[:1]:
        found = [
            one
            for one in _counts(statement, file, context.program, 0)
            if (tensor := seen(one.of, context)) is not None
            and len(tensor.shape) > 1
            and set(tensor.shape[:2]) == sizes
        ]
        if len(found) != 1 or not _is_batch_first(found[0].of, file, context.program):
            return
        (count,) = found
        text = file.segment(count.of)
        yield Proposal(
            edits=(edit_of(file, count.node, f"{text}.size(1)"),),
            culprit=culprit_of(file, count.node, "counts the samples, where the steps are meant"),
            belief=2.6,
        )


def _counts(statement: ast.stmt, file: SourceFile, program: Program, depth: int) -> Iterator[_Count]:
    """The counts of samples that a statement cuts or ranges by, and those of the names that it reads."""
    for node in walk(statement):
        ends = []
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            ends = [
                one.upper for one in parts if isinstance(one, ast.Slice) and one.upper is not None and one.lower is None
            ]
        elif isinstance(node, ast.Call) and program.names(file).is_call(node, "torch.arange") and len(node.args) == 1:
            ends = [node.args[0]]
        for end in ends:
            yield from _read(end, statement, file, program)
    scope = scope_of(statement, file, program)
    if scope is None or depth >= _DEPTH:
        return
    for name in sorted({one.id for one in walk(statement) if isinstance(one, ast.Name)}):
        for made in definitions(name, statement, scope):
            if isinstance(made, ast.Assign) and made is not statement:
                yield from _counts(made, file, program, depth + 1)


def _read(end: ast.expr, statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[_Count]:
    """The count that an end is: `x.size(0)`, `x.shape[0]`, `len(x)`, or a name that holds one of them."""
    of = _of(end, program, file)
    if of is not None:
        yield _Count(end, of)
    scope = scope_of(statement, file, program)
    if not isinstance(end, ast.Name) or scope is None:
        return
    made = [one for one in definitions(end.id, statement, scope) if isinstance(one, ast.Assign)]
    of = _of(made[0].value, program, file) if len(made) == 1 else None
    if of is not None:
        reads = [
            one
            for one in walk(scope)
            if isinstance(one, ast.Name) and one.id == end.id and isinstance(one.ctx, ast.Load)
        ]
        yield _Count(made[0].value if len(reads) == 1 else end, of)


def _of(node: ast.expr, program: Program, file: SourceFile) -> ast.expr | None:
    """The tensor whose first size an expression is."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size" and node.args:
        return node.func.value if number_of(node.args[0], program.names(file)) == 0 else None
    if isinstance(node, ast.Call) and dotted_name(node.func) == "len" and len(node.args) == 1:
        return node.args[0]
    is_shape = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if is_shape and number_of(node.slice, program.names(file)) == 0:  # type: ignore[attr-defined]
        return node.value.value  # type: ignore[attr-defined, no-any-return]
    return None


def _is_batch_first(tensor: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a tensor has its samples first, by the way it came, or as all layers that read sequences do."""
    axis = batch_axis(Value(tensor, file), program)
    if axis is not None:
        return axis == 0
    layers = [
        node
        for each in program.parsed()
        for node in each.walk()
        if isinstance(node, ast.Call) and program.names(each).is_call(node, *_STACKS)
    ]
    said = [word.value for one in layers for word in one.keywords if word.arg == "batch_first"]
    return bool(said) and len(said) == len(layers) and all(getattr(one, "value", None) is True for one in said)
