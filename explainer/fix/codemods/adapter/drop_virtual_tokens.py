"""`outputs.logits[:, -labels.size(1):-1]` for `[:, :-1]`: prompt tuning puts tokens before the text, which no label belongs to.

Only where the program configures such an adapter, prediction and target are shifted alike, and what the prediction has too much
is the virtual tokens of each sample.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.crash import ROWS, message_of, raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loss.per_token import PerToken, per_token
from explainer.source.network.virtual_token import has_virtual_tokens, virtual_tokens
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import all_parameters, reaching, scope_of

_ROWS = re.compile(r"Expected target size [(\[](\d+), (\d+)[)\]],? (?:but )?got (?:torch\.Size\()?\[(\d+), (\d+)\]")
_WHY = "has the virtual tokens of prompt tuning before the text, for which there are no labels"
_UNKNOWN = "how many virtual tokens there are is not known; right where they are what the prediction has too much"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the prediction of the loss that raised."""
    sizes = _sizes(message_of(context))
    if sizes is None or not has_virtual_tokens(context.program):
        return
    for file, statement in list(raised_at(context))[:1]:
        for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
            given = [*call.args, *(one.value for one in call.keywords if one.arg in ("input", "target"))]
            names = context.program.names(file)
            scores = per_token(given[0], 3, names) if len(given) > 1 else None
            labels = per_token(given[1], 2, names) if len(given) > 1 else None
            proposal = _proposal(scores, labels, sizes, file, context) if scores and labels else None
            if proposal is not None:
                yield proposal
                return


def _sizes(message: str) -> tuple[int, int, int | None] | None:
    """How many predictions and targets there are, and for how many samples, where the message says that too."""
    flat, rows = ROWS.search(message), _ROWS.search(message)
    if flat is not None:
        return int(flat[1]), int(flat[2]), None
    if rows is not None and rows[1] == rows[3]:
        return int(rows[1]) * int(rows[2]), int(rows[3]) * int(rows[4]), int(rows[1])
    return None


def _proposal(
    scores: PerToken, labels: PerToken, sizes: tuple[int, int, int | None], file: SourceFile, context: Context
) -> Proposal | None:
    is_shifted = scores.cut is not None
    if is_shifted != (labels.cut is not None) or (is_shifted and not _are_shifted(scores, labels)):
        return None
    many, few, batch = sizes
    tensor = seen(labels.node, context)
    shape = tensor.shape if tensor is not None else ()
    batch = batch or (shape[0] if len(shape) == 2 and shape[0] * (shape[1] - is_shifted) == few else None)
    counts = virtual_tokens(context.program)
    fitting = [one for one in counts if one and _fits(many, few, one, batch)]
    if (counts and not fitting) or (not counts and (batch is None or many <= few or (many - few) % batch)):
        return None
    length = _length(labels, scores.node, file)
    if length is None:
        return None
    proposal = Proposal(
        edits=(_edit(scores, length, file),), culprit=culprit_of(file, scores.node, _WHY), belief=2.6, is_origin=True
    )
    return proposal if counts else replace(proposal, applicability="unsafe", because=_UNKNOWN)


def _are_shifted(scores: PerToken, labels: PerToken) -> bool:
    """Whether one leaves out the last position, the other the first: `[:, :-1]` and `[:, 1:]`."""
    one, other = scores.cut, labels.cut
    return (
        one is not None and other is not None
        and (one.lower, ast.unparse(one.upper) if one.upper else "") == (None, "-1")
        and (ast.unparse(other.lower) if other.lower else "", other.upper) == ("1", None)
    )  # fmt: skip


def _fits(many: int, few: int, count: int, batch: int | None) -> bool:
    """Whether each sample has so many predictions more."""
    samples = (many - few) // count
    return many > few and samples * count == many - few and few % samples == 0 and batch in (None, samples)


def _edit(scores: PerToken, length: str, file: SourceFile) -> Edit:
    if scores.cut is None:
        return put_method(file, scores.node, f"[:, -{length}:]{'.contiguous()' if scores.is_viewed else ''}")
    start = file.span(scores.cut)[0]
    return Edit(file=file.path, start=start, end=start, new=f"-{length}")


def _length(labels: PerToken, at: ast.expr, file: SourceFile) -> str | None:
    """`labels.size(1)`, where the labels can be read already as the loss reads them later: `batch["labels"].size(1)` if not."""
    for node in (labels.node, *([labels.made] if labels.made is not None else [])):
        base = node
        while isinstance(base, (ast.Subscript, ast.Attribute)):
            base = base.value
        if isinstance(base, ast.Name) and _is_same(base, at, file):
            return f"{file.segment(node)}.size(1)"
    return None


def _is_same(name: ast.Name, at: ast.expr, file: SourceFile) -> bool:
    """Whether a name holds the same at another place of its function."""
    here, there = [[one.statement for one in reaching(name.id, node, file) if not one.fills] for node in (name, at)]
    if any(start_of(one) > start_of(at) for one in there):
        return False  # what a loop leaves there was read in the round before
    if here:
        return here == there
    scope = scope_of(name, file)
    return not there and not isinstance(scope, ast.Module) and name.id in all_parameters(scope)
