"""`cross_entropy(logits[masked], ids[masked])` for `cross_entropy(logits[masked], ids.view(-1))`: a loss pairs what a mask chose of both.

Also where the targets are chosen and the predictions are not. Only where the mask and the other side were seen, and fit each other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.blame import is_in_crash
from explainer.fix.clue.crash import ROWS, message_of
from explainer.fix.clue.seen import seen
from explainer.fix.clue.seen_shape import REFUSED
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import replace_whole
from explainer.source.file import SourceFile
from explainer.source.loss.loss import Loss, find_losses, unflattened
from explainer.source.tree import walk
from explainer.source.value.lineage import definitions, scope_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the side of the failing loss that no mask has chosen from."""
    message = message_of(context)
    if not ROWS.search(message) and not REFUSED.search(message):
        return
    for loss in find_losses(context.program):
        if not is_in_crash(loss.call, loss.file, context):
            continue
        for chosen, other, is_target in ((loss.prediction, loss.target, True), (loss.target, loss.prediction, False)):
            mask = _mask_of(chosen, loss, context)
            text = _chosen(other, mask, loss.file, is_target=is_target, context=context) if mask is not None else None
            if text is not None and _mask_of(other, loss, context) is None:
                why = f"pairs what `{ast.unparse(mask)}` chose with all of the other side"  # type: ignore[arg-type]
                yield Proposal(
                    edits=(replace_whole(loss.file, other, text),),
                    culprit=culprit_of(loss.file, loss.call, why),
                    belief=2.6,
                )


def _mask_of(side: ast.expr, loss: Loss, context: Context) -> ast.expr | None:
    """The mask, by the name that it was seen under, which chooses the rows of one side; None where none does."""
    program = context.program
    statement, scope = loss.file.statement(loss.call), scope_of(loss.call, loss.file, program)
    if isinstance(side, ast.Name) and scope is not None:
        made = [one for one in definitions(side.id, statement, scope) if isinstance(one, ast.Assign)]
        side = made[0].value if len(made) == 1 else side
    for one in walk(side):
        if isinstance(one, ast.Subscript):
            mask = unflattened(one.slice)
            tensor = seen(mask, context)
            if tensor is not None and tensor.dtype == "bool":
                return mask
    return None


def _chosen(side: ast.expr, mask: ast.expr, file: SourceFile, *, is_target: bool, context: Context) -> str | None:
    """The text of a side with the rows that the mask chooses; None where it has other rows than the mask."""
    whole = unflattened(side)
    tensor, places = seen(whole, context), seen(mask, context)
    if tensor is None or places is None:
        return None
    extra = tensor.shape[len(places.shape) :]
    if tensor.shape[: len(places.shape)] == places.shape and len(extra) == (0 if is_target else 1):
        return f"{file.segment(whole)}[{ast.unparse(mask)}]"
    return None
