"""`loss = loss / self.args.gradient_accumulation_steps` before a `compute_loss` of the program returns its mean in training.

Only where a run was seen to add up the means of an update's batches. An evaluation is as before: it gives `num_items_in_batch` too, in
later releases, so that the mode of the model tells it from training.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.model.verification import ADDS_UP
from explainer.source.value.binding import walk_scope

_SEEN = re.compile(rf"(\S+):(\d+) {re.escape(ADDS_UP)}")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each `compute_loss` that was seen, before each return of a loss with a name."""
    found = [one for line in context.incident.log if (one := _SEEN.search(line.text))]
    for file, function in context.program.functions() if found else ():
        name = file.path.replace("\\", "/").rpartition("/")[2]
        first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
        if function.name != "compute_loss" or not any(
            one[1] == name and first <= int(one[2]) <= function.lineno for one in found
        ):
            continue
        returns = [one for one in walk_scope(function) if isinstance(one, ast.Return) and one.value is not None]
        losses = [_loss(one.value) for one in returns]
        if not losses or None in losses:
            continue
        edits = tuple(
            insert_before(
                file, one, f"if self.model.training:\n    {loss} = {loss} / self.args.gradient_accumulation_steps"
            )
            for one, loss in zip(returns, losses, strict=True)
        )
        yield Proposal(
            edits=edits, culprit=culprit_of(file, returns[-1], "returns the mean of one batch of an update"), belief=2.0
        )


def _loss(value: ast.expr | None) -> str | None:
    """The name of the loss in `loss`, `(loss, outputs)` and `(loss, outputs) if return_outputs else loss`."""
    if isinstance(value, ast.IfExp):
        named = {_loss(value.body), _loss(value.orelse)}
        return named.pop() if len(named) == 1 else None
    if isinstance(value, ast.Tuple) and value.elts:
        return _loss(value.elts[0])
    return value.id if isinstance(value, ast.Name) else None
