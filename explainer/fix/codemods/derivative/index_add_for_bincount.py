"""`w.new_zeros(n).index_add(0, i, w)` for `torch.bincount(i, weights=w, minlength=n)`, which has no derivative for its weights."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand
from explainer.source.file import SourceFile
from explainer.source.name import Names


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each weighted count, where the message names the operation; without a length only the line."""
    said = "\n".join(one.message for one in context.incident.exceptions)
    for file in context.program.parsed() if "bincount" in said else ():
        for node in file.walk():
            if isinstance(node, ast.Call):
                yield from _count(node, file, context.program.names(file))


def _count(call: ast.Call, file: SourceFile, names: Names) -> Iterator[Proposal]:
    is_function = names.is_call(call, "torch.bincount")
    if not is_function and not names.is_call(call, ".bincount"):
        return
    given = {one.arg: one.value for one in call.keywords}
    places = call.args if is_function or not isinstance(call.func, ast.Attribute) else [call.func.value, *call.args]
    given |= dict(zip(("input", "weights", "minlength"), places, strict=False))
    index, weights, length = given.get("input"), given.get("weights"), given.get("minlength")
    if index is None or weights is None:
        return
    text = ""
    if length is not None:
        text = f"{operand(file, weights)}.new_zeros({file.segment(length)}).index_add(0, {file.segment(index)}, {file.segment(weights)})"
    yield Proposal(
        edits=(edit_of(file, call, text),) if text else (),
        culprit=culprit_of(file, call, "sums the weights by their index, without a derivative for them"),
        belief=2.0,
    )
