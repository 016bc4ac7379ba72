"""Labels are repeated as their samples are, where several views of a batch go through the model at once: `labels.repeat(views)`.

Whether the views of a sample stand together decides between `repeat` and `repeat_interleave`: the wrong one runs as well, and gives
each view another sample's label. So only where the program shows how it joins them, beside the labels or on the way to the loss.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import ROWS, message_of
from explainer.fix.clue.failure import is_in_frames
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.data.views import Views, views_of
from explainer.source.file import SourceFile
from explainer.source.loss.loss import Loss, find_losses
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import lineage

_LABELS = re.compile(r"label|target|class|(?:^|_)y(?:_|$|\d)", re.IGNORECASE)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the labels that leave a function beside joined views, else for those of the loss that failed."""
    sizes = ROWS.search(message_of(context))
    if sizes is None or int(sizes[1]) < 2 * int(sizes[2]) or int(sizes[1]) % int(sizes[2]):
        return
    times = int(sizes[1]) // int(sizes[2])
    program = context.program
    found = False
    for file, function in program.functions():
        for labels, views in _beside(function, file, program):
            if _fits(views, times):
                found = True
                yield _proposal(labels, views, file, 2.4)
    for loss in find_losses(program) if not found else ():
        joined = _on_the_way(loss, program) if is_in_frames(loss.call, loss.file, context) else None
        if joined is not None and _fits(joined, times):
            yield _proposal(loss.target, joined, loss.file, 2.2)


def _fits(views: Views, times: int) -> bool:
    return not views.count.isdigit() or int(views.count) == times


def _proposal(labels: ast.expr, views: Views, file: SourceFile, belief: float) -> Proposal:
    method = f".repeat_interleave({views.count})" if views.is_beside else f".repeat({views.count})"
    order = "stand beside each other" if views.is_beside else "come one after the other"
    return Proposal(
        edits=(put_method(file, labels, method),),
        culprit=culprit_of(file, labels, "are those of one view of the batch, and the images are those of several"),
        belief=belief,
        applicability="unsafe",
        because=f"the views of the batch {order}, and so do their labels",
        title=f"Repeat the labels as the views are: `labels{method}`",
    )


def _beside(function: Function, file: SourceFile, program: Program) -> Iterator[tuple[ast.expr, Views]]:
    """Labels that a function returns, with the joined views that it returns too: in a tuple of two, or under their keys."""
    for node in walk(function):
        if not isinstance(node, ast.Return) or program.names(file).function_of(node) is not function:
            continue
        parts = list(_returned(node.value))
        joined = [views for _, one in parts if (views := views_of(one, node, file, program)) is not None]
        others = [one for key, one in parts if views_of(one, node, file, program) is None and _LABELS.search(key)]
        if len(joined) == 1 and len(others) == 1:
            yield others[0], joined[0]


def _returned(value: ast.expr | None) -> Iterator[tuple[str, ast.expr]]:
    """What a function returns, each with its key, or the words of it."""
    if isinstance(value, (ast.Tuple, ast.List)):
        yield from ((ast.unparse(one), one) for one in value.elts)
    elif isinstance(value, ast.Dict):
        yield from (
            (str(getattr(key, "value", "")), one) for key, one in zip(value.keys, value.values, strict=True) if key
        )


def _on_the_way(loss: Loss, program: Program) -> Views | None:
    """The views that were joined for what a loss compares, in the function of the loss."""
    at = loss.file.statement(loss.call)
    for one in (at, *reversed(lineage(loss.prediction, at, loss.file, program))):
        for node in walk(one):
            if isinstance(node, ast.expr) and (views := views_of(node, one, loss.file, program)) is not None:
                return views
    return None
