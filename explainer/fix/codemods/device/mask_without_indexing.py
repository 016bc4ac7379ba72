"""What a CUDA graph's capture refuses, as it waits for the GPU: a selection by a mask becomes a weighing of all elements.

`error[seen].mean()` asks the GPU how many elements there are; `torch.where(seen, error, 0).sum() / seen.sum()` does not. Other lines
that wait, as `loss.item()`, are named, and their author decides what becomes of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.blame import is_file
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.loss.masked_mean import MaskedMean
from explainer.fix.text.rewrite import operand
from explainer.model.incident import ExceptionRecord
from explainer.source.file import SourceFile
from explainer.source.tree import walk

_SAID = ("when stream is capturing", "error during capture", "during CUDA graph capture")
_CAPTURES = ("torch.cuda.graph", "torch.cuda.graphs.graph")
_READS = frozenset({"item", "tolist", "cpu", "numpy", "nonzero", "synchronize", "unique", "masked_select", "argwhere"})
_IGNORED = -100
_CROSS_ENTROPY = ("torch.nn.functional.cross_entropy", "torch.nn.functional.nll_loss")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit of the statement that waited while a graph was captured; without one where it is of another kind."""
    for file, statement in _captured(context):
        reader = MaskedMean(file, statement, context)
        rewritten = reader.rewritten() or _ignoring(reader)
        if rewritten:
            yield Proposal(
                edits=tuple(edit_of(file, node, text) for node, text in rewritten),
                culprit=culprit_of(
                    file, reader.selections[0].node, "selects by a mask, and waits for how many there are"
                ),
                belief=2.5,
                title="Weigh all elements by the mask, without selecting any",
                is_origin=True,
            )
        else:
            yield Proposal(
                edits=(),
                culprit=culprit_of(file, _waiting(statement, reader), "waits for the GPU while a graph is captured"),
                belief=1.5,
                is_origin=True,
            )
        return


def _captured(context: Context) -> Iterator[tuple[SourceFile, ast.stmt]]:
    """The statements at which the capture broke, those of the first exception first; not the capture itself."""
    for record in context.incident.exceptions:
        if any(words in record.message for words in _SAID):
            yield from _inside(record, context)


def _inside(record: ExceptionRecord, context: Context) -> Iterator[tuple[SourceFile, ast.stmt]]:
    frame = next((one for one in reversed(record.frames) if one.library is None and one.line), None)
    for file in context.program.parsed() if frame is not None else ():
        statement = (
            context.program.at(file.path, frame.line, frame.mark)
            if frame is not None and frame.line and is_file(frame.file, file)
            else None
        )
        if statement is not None and not _is_capture(statement, file, context):
            yield file, statement
            return


def _is_capture(statement: ast.stmt, file: SourceFile, context: Context) -> bool:
    names = context.program.names(file)
    items = statement.items if isinstance(statement, ast.With) else []
    return any(names.is_call(one.context_expr, *_CAPTURES) for one in items)


def _waiting(statement: ast.stmt, reader: MaskedMean) -> ast.AST:
    """The call or the selection that waits, where it is seen; else the statement."""
    if reader.selections:
        return reader.selections[0].node
    calls = (one for one in walk(statement) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute))
    return next((one for one in calls if one.func.attr in _READS), statement)  # type: ignore[attr-defined]


def _ignoring(reader: MaskedMean) -> list[tuple[ast.expr, str]]:
    """`cross_entropy(scores[seen], labels[seen])` over all rows, those that are not seen with labels that it ignores."""
    file, names = reader.file, reader.context.program.names(reader.file)
    for call in walk(reader.statement):
        if not isinstance(call, ast.Call) or not names.is_call(call, *_CROSS_ENTROPY) or len(call.args) != 2:
            continue
        parts = {one.node: one for one in reader.selections}
        scores, labels = (parts.get(one) for one in call.args)
        given = {one.arg: file.segment(one.value) for one in call.keywords}
        if scores is None or labels is None or ast.dump(scores.mask) != ast.dump(labels.mask) or "reduction" in given:
            continue
        axes = reader.rank(labels.mask), reader.rank(labels.values), reader.rank(scores.values)
        if None in axes or axes[0] != axes[1] or axes[2] != (axes[1] or 0) + 1:
            continue
        flat = "" if axes[0] == 1 else ".flatten()"
        rows = "" if axes[0] == 1 else f".flatten(0, {(axes[0] or 0) - 1})"
        mask = labels.mask
        left = file.segment(mask.operand) if isinstance(mask, ast.UnaryOp) else f"~{operand(file, mask)}"
        ignored = given.get("ignore_index", str(_IGNORED))
        return [
            (scores.node, f"{operand(file, scores.values)}{rows}"),
            (labels.node, f"{operand(file, labels.values)}.masked_fill({left}, {ignored}){flat}"),
        ]
    return []
