"""`np.argmax(logits, axis=-1)` becomes `np.argmax(logits[0] if isinstance(logits, tuple) else logits, axis=-1)` in metrics.

A model that gives hidden states or a cache beside its logits makes a Trainer hand all of them to `compute_metrics`, of which the
first are the logits.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

_REFUSED = "The requested array has an inhomogeneous shape"
_METRICS = "compute_metrics"
_PREDICTIONS = "predictions"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each array that the failing statement of the metrics makes of the predictions."""
    if _REFUSED not in message_of(context):
        return
    for file, statement in failing_statements(context)[:1]:
        function = context.program.names(file).function_of(statement)
        if not isinstance(function, ast.FunctionDef) or not _is_of_metrics(function, context.program):
            continue
        for call in (one for one in walk(statement) if isinstance(one, ast.Call) and one.args):
            given = call.args[0]
            if (context.program.names(file).qualified(call.func) or "").startswith("numpy.") and _is_predictions(
                given, function
            ):
                text = file.segment(given)
                yield Proposal(
                    edits=(edit_of(file, given, f"{text}[0] if isinstance({text}, tuple) else {text}"),),
                    culprit=culprit_of(file, call, f"takes `{text}`, all outputs of the model, for its logits"),
                    belief=2.5,
                )


def _is_of_metrics(function: ast.FunctionDef, program: Program) -> bool:
    """Whether a function is handed to a Trainer for its metrics."""
    given = [
        one.value
        for file in program.parsed()
        for call in file.walk()
        if isinstance(call, ast.Call)
        for one in call.keywords
        if one.arg == _METRICS
    ]
    return any((dotted_name(one) or "").rpartition(".")[2] == function.name for one in given)


def _is_predictions(node: ast.expr, function: ast.FunctionDef) -> bool:
    """Whether an expression is the predictions of what the metrics get: `p.predictions`, or a name that was taken from it first."""
    if isinstance(node, ast.Attribute):
        return node.attr == _PREDICTIONS
    if not isinstance(node, ast.Name):
        return False
    parameters = {one.arg for one in function.args.args}
    for one in walk(function):
        if not isinstance(one, ast.Assign):
            continue
        for target in one.targets:
            is_first = isinstance(target, ast.Tuple) and dotted_name(target.elts[0]) == node.id
            if is_first and dotted_name(one.value) in parameters:
                return True
            if dotted_name(target) == node.id and isinstance(one.value, ast.Attribute):
                return one.value.attr == _PREDICTIONS and dotted_name(one.value.value) in parameters
    return False
