"""Two networks that train by losses of one forward: both backward calls before the first step, the second for its own parameters.

    value.backward(inputs=[one for group in opt_actor.param_groups for one in group["params"]])
    opt_critic.step()

The gradients are those of the losses as they were computed. Without `inputs` the second backward would add to the gradients
of the network that steps after it; a second forward behind the step would be another loss.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import is_crash
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, lines_of, remove_statement
from explainer.fix.text.rewrite import add_argument
from explainer.source.loop.backward import Backward, cleared, find_backwards, stepped
from explainer.source.value.lineage import block_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each backward that an optimizer's step stands before, with another optimizer's step behind it."""
    if not context.has_failed:
        return
    for backward in find_backwards(context.program):
        file, statement = backward.file, backward.statement
        block = list(block_of(statement, file))
        if statement not in block or not _is_plain(backward):
            continue
        at = block.index(statement)
        own = next((name for one in block[at + 1 :] if (name := stepped(one))), None)
        earlier = [one for one in block[:at] if stepped(one)]
        if own is None or len(earlier) != 1 or stepped(earlier[0]) == own:
            continue
        first, other = earlier[0], stepped(earlier[0])
        if any(cleared(one) == other for one in block[block.index(first) + 1 : at]):
            continue  # its gradients would be gone by then
        yield Proposal(
            edits=(
                remove_statement(file, first),
                add_argument(file, backward.call, f'inputs=[one for group in {own}.param_groups for one in group["params"]]'),
                insert_after(file, statement, lines_of(file, first)),
            ),
            culprit=culprit_of(file, first, f"changes the weights of `{other}` before this loss's backward reads them"),
            belief=0.8 + (1.0 if is_crash(file, backward.call, context) else 0.0),
        )  # fmt: skip


def _is_plain(backward: Backward) -> bool:
    """`loss.backward()` as a statement, without `inputs` or a gradient of its own."""
    call = backward.call
    is_alone = isinstance(backward.statement, ast.Expr) and backward.statement.value is call
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "backward" and not call.args
    return backward.is_plain and is_alone and is_method and all(one.arg == "retain_graph" for one in call.keywords)
