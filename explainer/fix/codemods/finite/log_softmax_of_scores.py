"""`nll_loss(torch.log(scores), y)` becomes `nll_loss(torch.log_softmax(scores, 1), y)` where a trace saw the logarithm of negative numbers.

They are no probabilities, then: a floor below them would give all of them one logarithm, and no gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.loss.log_space import argument_of
from explainer.fix.text.rewrite import replace_whole, spell
from explainer.model.trace import NOT_FINITE
from explainer.source.loss.loss import find_losses
from explainer.source.value.sign import definition_of

_LOSSES = frozenset({"nll_loss", "NLLLoss"})
_WHY = "takes the logarithm of scores, of which some are negative: they are no probabilities"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such loss whose logarithm the trace names."""
    if not any(one.name == "traced_nan_of_finite" and one.value.startswith("log") for one in context.incident.facts):
        return
    traced = [statement for _, _, statement in traced_statements(NOT_FINITE, context)][:1]
    for loss in find_losses(context.program):
        if loss.name not in _LOSSES:
            continue
        file, names = loss.file, context.program.names(loss.file)
        node = definition_of(loss.prediction, file, context.program) or loss.prediction
        argument = argument_of(node, names, "log") if isinstance(node, ast.Call) else None
        if argument is not None and file.statement(node) in traced:
            text = f"{spell(names, 'torch.log_softmax')}({file.segment(argument)}, 1)"
            yield Proposal(edits=(replace_whole(file, node, text),), culprit=culprit_of(file, node, _WHY), belief=3.0)
