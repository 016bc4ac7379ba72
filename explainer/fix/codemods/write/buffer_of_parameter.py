"""A parameter that the program moves by a rule of its own becomes a buffer: `self.register_buffer("lam", torch.tensor(0.5))`.

An optimizer that takes all parameters would move it too, against the rule. As a buffer it is saved and moved to a device with the
module, takes writes in place, and trains by the rule alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.write.hand_moved import hand_moved
from explainer.source.graph.write import is_without_grad


def propose(context: Context) -> Iterator[Proposal]:
    """An edit where the parameter is made whose write raised."""
    if not context.has_failed:
        return
    for file, statement in crash_places(context):
        made = (
            None if is_without_grad(statement, file, context.program) else hand_moved(statement, file, context.program)
        )
        target = made.targets[0] if made is not None else None
        if made is None or not isinstance(target, ast.Attribute) or not isinstance(made.value, ast.Call):
            continue
        text = f'self.register_buffer("{target.attr}", {file.segment(made.value.args[0])})'
        yield Proposal(
            edits=(edit_of(file, made, text),),
            culprit=culprit_of(file, statement, f"moves `self.{target.attr}`, which the optimizer moves too"),
            belief=2.5,
        )
        return
