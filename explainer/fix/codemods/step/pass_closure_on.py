"""A wrapper of optimizers hands its closure on: `def step(self, closure=None): loss = self.optimizer.step()` gives it to that step.

Sharpness-aware minimisation and LBFGS evaluate the loss again within a step. What wraps them and runs the closure itself reads it,
and is left as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.patch import Edit
from explainer.source.name import Function
from explainer.source.tree import walk
from explainer.source.value.binding import all_parameters

_CLOSURES = ("closure", "optimizer_closure")
_WHY = "steps the optimizer within without the closure that was given"


def propose(context: Context) -> Iterator[Proposal]:
    """The innermost frame that was given a closure, does not read it, and steps an optimizer without one."""
    for file, statement in failing_statements(context):
        function = context.program.names(file).function_of(statement)
        closure = _unread(function) if function is not None else None
        steps = [one for one in walk(statement) if _is_bare_step(one)]
        if closure is not None and len(steps) == 1 and isinstance(call := steps[0], ast.Call):
            end = file.span(call)[1] - len(")")
            yield Proposal(
                edits=(Edit(file=file.path, start=end, end=end, new=closure),),
                culprit=culprit_of(file, call, _WHY),
                belief=2.5,
                is_origin=True,
            )
            return


def _unread(function: Function) -> str | None:
    """The parameter of a `step` that takes a closure, where nothing in it reads that."""
    name = next((one for one in all_parameters(function) if one in _CLOSURES), None)
    is_read = any(isinstance(one, ast.Name) and one.id == name for one in walk(function))
    return name if name is not None and not is_read else None


def _is_bare_step(node: ast.AST) -> bool:
    is_step = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step"
    return is_step and isinstance(node, ast.Call) and not node.args and not node.keywords
