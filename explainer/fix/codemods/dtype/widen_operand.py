"""The half-precision operand of a function of torch goes up to that of the others: `F.grid_sample(volume.float(), grid)`.

What autocast gave inside its block meets float32 outside of it. Which operand is which the live tensors of the line say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.tree import walk
from explainer.source.value.dtype import FLOAT32

_HALVES = frozenset({"float16", "bfloat16"})
_BELIEF = 0.7  # below the casts of layers and products, which know what the weights are


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the call of torch on the line that raised, where its operands are of half precision and of float32."""
    if not context.has_failed:
        return
    for file, statement in list(raised_at(context))[:1]:
        calls = [
            one
            for one in walk(statement)
            if isinstance(one, ast.Call)
            and (context.program.names(file).qualified(one.func) or "").startswith("torch.")
        ]
        for call in calls if len(calls) == 1 else ():
            given = [*call.args, *(one.value for one in call.keywords)]
            dtypes = [(one, tensor.dtype) for one in given if (tensor := seen(one, context)) is not None]
            narrow = [one for one, dtype in dtypes if dtype in _HALVES]
            if narrow and any(dtype == FLOAT32 for _, dtype in dtypes):
                yield Proposal(
                    edits=tuple(put_method(file, one, ".float()") for one in narrow),
                    culprit=culprit_of(file, call, "is given half precision beside float32"),
                    belief=_BELIEF,
                )
