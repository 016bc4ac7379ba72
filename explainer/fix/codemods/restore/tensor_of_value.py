"""`torch.Tensor(v)` of a state becomes `torch.tensor(v)`: the type takes a number for a size, and an array of no axes for an empty list.

So do federated clients that are sent a state as arrays of NumPy: `num_batches_tracked` of batch normalisation has no axes. The
function keeps the value, its shape and its dtype.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import spell
from explainer.source.name import Names
from explainer.source.tree import walk

_EMPTY = "shape torch.Size([0]) from checkpoint, the shape in current model is torch.Size([])"
_TYPES = ("torch.Tensor", "torch.FloatTensor")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such call in the functions that load the state."""
    if _EMPTY not in message_of(context):
        return
    for file, statement in crash_places(context):
        names = context.program.names(file)
        scope = names.function_of(statement) or file.tree
        for call in walk(scope) if scope is not None else ():
            if isinstance(call, ast.Call) and _is_of_value(call, names):
                yield Proposal(
                    edits=(edit_of(file, call.func, spell(names, "torch.tensor")),),
                    culprit=culprit_of(file, call, "makes an empty tensor of a value without axes"),
                    belief=2.5,
                    is_origin=True,
                )


def _is_of_value(call: ast.Call, names: Names) -> bool:
    """Whether the type is given one value, no sizes that are written out."""
    is_one = len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], (ast.Constant, ast.Starred))
    return is_one and names.is_call(call, *_TYPES)
