"""`zero_grad` between a backward and its step moves before the backward: behind it, it throws away what the step needs.

In a loop over optimizers it moves behind the step. With `manual` in the rule's options it is the backward of Lightning's manual
optimization that is meant, else any other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.codemod import (
    Context,
    Proposal,
    culprit_of,
    insert_after,
    insert_before,
    lines_of,
    remove_statement,
)
from explainer.source.file import SourceFile
from explainer.source.loop.backward import cleared, find_backwards, stepped
from explainer.source.tree import walk
from explainer.source.value.lineage import block_of

_WHY = "throws the gradients away between their backward and the step"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each block in which gradients are made, cleared, and stepped with in that order."""
    if not context.has_failed:
        return
    backwards = list(find_backwards(context.program))
    for backward in backwards:
        file = backward.file
        is_manual = getattr(backward.call.func, "attr", "") == "manual_backward"
        if is_manual != bool(context.options.get("manual")):
            continue
        block = list(block_of(backward.statement, file))
        behind = block[block.index(backward.statement) + 1 :] if block else []
        step, clears = _cleared_before(behind)
        own = {one.statement for one in backwards}
        again = [one for one in behind[: behind.index(step)] if own & set(walk(one))] if step is not None else []
        # Sharpness-aware minimisation climbs with the first gradients, clears them, and goes back once more.
        clears = [one for one in clears if not any(one.lineno < other.lineno for other in again)]
        if clears:
            text = "\n".join(lines_of(file, one) for one in clears)
            yield Proposal(
                edits=(insert_before(file, backward.statement, text), *(remove_statement(file, one) for one in clears)),
                culprit=culprit_of(file, clears[0], _WHY),
                belief=2.5,
            )
        inner = [one for one in behind if isinstance(one, ast.For) and _cleared_before(one.body)[0] is not None]
        goes_back = any(other.statement in set(walk(one)) for one in inner[:1] for other in backwards)
        if step is None and inner and not goes_back:
            yield from _in_loop(inner[0], file)


def _cleared_before(statements: Sequence[ast.stmt]) -> tuple[ast.stmt | None, list[ast.stmt]]:
    """The first step of some statements, and what clears the gradients of its optimizer before it.

    Another optimizer's may be cleared of what this backward has left there, as in a GAN.
    """
    step = next((one for one in statements if stepped(one)), None)
    if step is None:
        return None, []
    return step, [one for one in statements[: statements.index(step)] if cleared(one) == stepped(step)]


def _in_loop(loop: ast.For, file: SourceFile) -> Iterator[Proposal]:
    """`for opt in optimizers: opt.zero_grad(); opt.step()`."""
    step, clears = _cleared_before(loop.body)
    walked = {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}
    if step is not None and clears and stepped(step) in walked and step.lineno != clears[-1].lineno:
        text = "\n".join(lines_of(file, one) for one in clears)
        yield Proposal(
            edits=(*(remove_statement(file, one) for one in clears), insert_after(file, step, text)),
            culprit=culprit_of(file, clears[0], _WHY),
            belief=2.5,
        )
