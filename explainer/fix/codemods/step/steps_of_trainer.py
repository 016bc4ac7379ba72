"""`self.trainer.estimated_stepping_batches` for the length of a loader that the module does not have, as `fit` was handed it.

`len(self.train_dataloader()) * self.trainer.max_epochs` becomes all of them, `len(self.train_dataloader())` an epoch's share.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.name import dotted_name
from explainer.source.tree import walk

_REFUSED = "`train_dataloader` must be implemented"
_ALL = "self.trainer.estimated_stepping_batches"
_EPOCHS = "self.trainer.max_epochs"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such length in `configure_optimizers`."""
    if _REFUSED not in message_of(context):
        return
    for file, statement in list(raised_at(context))[:1]:
        function = context.program.names(file).function_of(statement)
        if function is None or function.name != "configure_optimizers":
            continue
        lengths = [one for one in walk(function) if isinstance(one, ast.Call) and _is_length(one)]
        edits = []
        for one in lengths:
            above = file.parents.get(one)
            sides = [above.left, above.right] if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mult) else []
            is_whole = any(dotted_name(side) == _EPOCHS for side in sides)
            new = (
                _ALL
                if is_whole
                else f"({_ALL} // {_EPOCHS})"
                if isinstance(above, ast.BinOp)
                else f"{_ALL} // {_EPOCHS}"
            )
            edits.append(edit_of(file, above if is_whole and above is not None else one, new))
        if edits:
            yield Proposal(
                edits=tuple(edits),
                culprit=culprit_of(file, lengths[0], "asks the module for a loader that the trainer was given"),
                belief=2.5,
            )


def _is_length(node: ast.Call) -> bool:
    """`len(self.train_dataloader())`."""
    inner = node.args[0] if dotted_name(node.func) == "len" and len(node.args) == 1 else None
    return isinstance(inner, ast.Call) and dotted_name(inner.func) == "self.train_dataloader" and not inner.args
