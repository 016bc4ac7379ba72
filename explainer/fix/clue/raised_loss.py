"""The loss whose function raised, by the traceback: whatever table, loop or attribute its call takes it from.

The same call may run others in other rounds: only an edit that changes no value, as a cast, belongs there.
"""

from __future__ import annotations

import ast

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context
from explainer.source.loss.loss import Loss, is_loss, loss_named
from explainer.source.tree import walk

_NEAR = 4  # a module's call goes through three functions of its own


def raised_loss(context: Context) -> Loss | None:
    """The call on the line that raised which ran a loss of torch; None where several calls may have."""
    name = raised_function(context)
    places = list(raised_at(context))[:1] if name is not None else []
    for file, statement in places:
        calls = [node for node in walk(statement) if isinstance(node, ast.Call) and len(node.args) > 1]
        # What is called by a name of torch that computes something else ran to its end.
        calls = [
            one for one in calls if not (context.program.names(file).qualified(one.func) or "").startswith("torch.")
        ]
        if len(calls) == 1:
            return loss_named(name or "", calls[0], file, calls[0])
    return None


def raised_function(context: Context) -> str | None:
    """The loss of torch that raised, right below the program's own innermost line: `cross_entropy`; None for anything else."""
    frames = context.incident.exceptions[-1].frames if context.incident.exceptions else ()
    own = max((at for at, one in enumerate(frames) if one.library is None), default=None)
    below = frames[own + 1 : own + 1 + _NEAR] if own is not None else ()
    return next((one.function for one in below if one.function and is_loss(one.function)), None)
