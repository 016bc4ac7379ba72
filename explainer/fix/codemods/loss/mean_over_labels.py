"""A class loss averaged over the labels that count, at least one: without any, its mean is 0 / 0.

`F.cross_entropy(logits, labels)` becomes `F.cross_entropy(logits, labels, reduction="sum") / (labels != -100).sum().clamp(min=1)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand
from explainer.model.patch import Edit
from explainer.model.trace import NOT_FINITE
from explainer.source.file import SourceFile
from explainer.source.loss.loss import Loss, find_losses
from explainer.source.program import Program

_NAMES = frozenset({"cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss"})
_OTHER_MEAN = frozenset({"weight", "reduce", "size_average", "reduction"})  # not one label, one part
_IGNORED = "-100"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each mean of a class loss that leaves labels out; where the trace shows one, for that alone."""
    if not context.has_failed:
        return
    program = context.program
    losses = [one for one in program.once(find_losses) if one.name in _NAMES and one.reduction == "mean"]
    traced = [statement for _, statement in traced_places(NOT_FINITE, context)]
    is_marked = any(_is_marker(node, one) for one in program.parsed() for node in one.walk())
    for loss in losses:
        is_traced = loss.file.statement(loss.call) in traced
        is_masked = is_marked or "ignore_index" in loss.options
        is_shared = sum(one.made is loss.made for one in losses) > 1
        edits = () if is_shared or (traced and not is_traced) else _edits(loss, program)
        if edits and (is_traced or is_masked):
            why = "averages over the labels that are not ignored: where a batch has none, that is 0 / 0"
            yield Proposal(edits=edits, culprit=culprit_of(loss.file, loss.call, why), belief=1.0 if is_masked else 0.4)


def _is_marker(node: ast.AST, file: SourceFile) -> bool:
    """Whether a node is the -100 that torch leaves out by itself, and no bound of a slice."""
    is_number = (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)
    )
    return is_number and node.operand.value == 100 and not isinstance(file.parents.get(node), ast.Slice)  # type: ignore[attr-defined]


def _edits(loss: Loss, program: Program) -> tuple[Edit, ...]:
    """The call as a quotient, and the sum where the reduction is set; none where another mean was asked for."""
    file, call, made = loss.file, loss.call, loss.made
    if _OTHER_MEAN & set(loss.options) or len(call.args) > 2 or made is call.func:
        return ()
    where = program.file_of(made)
    ignored = loss.options.get("ignore_index")
    is_said = (
        ignored is None
        or isinstance(ignored, (ast.Constant, ast.UnaryOp))
        or _is_of_file(ignored, where, file, program)
    )
    if where is None or (made is not call and not is_said):
        return ()
    marker = where.segment(ignored) if ignored is not None else _IGNORED
    start, end = file.span(call)
    text = _with_sum(file.text[start:end]) if made is call else file.text[start:end]
    quotient = f"{text} / ({operand(file, loss.target)} != {marker}).sum().clamp(min=1)"
    above = file.parents.get(call)
    is_part = isinstance(above, (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript))
    edit = edit_of(file, call, f"({quotient})" if is_part else quotient)
    return (edit,) if made is call else (edit_of(where, made, _with_sum(where.segment(made))), edit)


def _is_of_file(ignored: ast.expr, where: SourceFile | None, file: SourceFile, program: Program) -> bool:
    """Whether a marker is a constant by name, of the file in which both the criterion is made and called: `VOID`."""
    if where is not file or not isinstance(ignored, ast.Name) or not ignored.id.isupper():
        return False
    bound = [
        one
        for one in file.walk()
        if isinstance(one, ast.Name) and one.id == ignored.id and isinstance(one.ctx, ast.Store)
    ]
    return ignored.id in program.names(file).imports or any(
        isinstance(file.parents.get(file.statement(one)), ast.Module) for one in bound
    )


def _with_sum(text: str) -> str:
    """A call with one more keyword."""
    inner = text[:-1].rstrip()
    return f'{inner}{"" if inner.endswith("(") else " " if inner.endswith(",") else ", "}reduction="sum")'
