"""A function that takes values to NumPy and brings them back computes in torch: `torch.log(power)` for `np.log(power.numpy())`.

The whole of the function, or nothing: one call that torch does not have by the same meaning leaves it as it is. `.detach()` would
let it run, and starve what comes before it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.graph.in_torch import NoForm, Translation
from explainer.model.trace import CUT, STARVING_CUT


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each function on the way of the failure, or of a traced cut, that goes through NumPy and back."""
    if not context.has_failed:
        return
    places = [
        *failing_statements(context),
        *((file, one) for kind in (CUT, STARVING_CUT) for _, file, one in traced_statements(kind, context)),
    ]
    seen: set[ast.AST] = set()
    for file, statement in places:
        function = context.program.names(file).function_of(statement)
        if function is None or function in seen:
            continue
        seen.add(function)
        translation = Translation(function, file, context.program)
        try:
            edits = tuple(dict.fromkeys(translation.edits(statement))) or tuple(
                dict.fromkeys(translation.applied(statement))
            )
        except NoForm:
            continue
        if edits:
            yield Proposal(
                edits=edits,
                culprit=culprit_of(file, statement, "takes the values to NumPy, where no graph is recorded"),
                belief=2.4,
            )
