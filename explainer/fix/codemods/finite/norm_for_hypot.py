"""`torch.hypot(x, y)` becomes `torch.linalg.vector_norm(torch.stack([x, y]), dim=0)`: at 0 its gradient is 0 and not 0 / 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.blame import nearness
from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand, spell
from explainer.model.trace import NOT_FINITE


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such call; that of the traced line before the others."""
    if not context.has_failed:
        return
    traced = [statement for _, statement in traced_places(NOT_FINITE, context)]
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if not isinstance(node, ast.Call) or node.keywords:
                continue
            if names.is_call(node, "torch.hypot") and len(node.args) == 2:
                sides = [file.segment(one) for one in node.args]
            elif isinstance(node.func, ast.Attribute) and node.func.attr == "hypot" and len(node.args) == 1:
                if (names.qualified(node.func) or "").startswith(("math.", "numpy.")):
                    continue
                sides = [operand(file, node.func.value), file.segment(node.args[0])]
            else:
                continue
            norm, stack = spell(names, "torch.linalg.vector_norm"), spell(names, "torch.stack")
            yield Proposal(
                edits=(edit_of(file, node, f"{norm}({stack}([{', '.join(sides)}]), dim=0)"),),
                culprit=culprit_of(file, node, "has the gradient 0 / 0 where both of its arguments are 0"),
                belief=(1.5 if file.statement(node) in traced else 0.3) + nearness(file, node, context),
            )
