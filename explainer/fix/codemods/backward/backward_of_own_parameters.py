"""Two networks that train by losses of one forward: both backward calls before the first step, the second for its own parameters.

    value.backward(inputs=[one for group in opt_actor.param_groups for one in group["params"]])
    opt_critic.step()

The gradients are those of the losses as they were computed. Without `inputs` the second backward would add to the gradients
of the network that steps after it; a second forward behind the step would be another loss. Only shown where the first network makes all that
the losses share (an encoder, with a classifier behind it): the second loss may be meant to train it too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import is_crash
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, lines_of, remove_statement
from explainer.fix.text.rewrite import add_argument
from explainer.source.loop.backward import Backward, calls_of, cleared, find_backwards, stepped
from explainer.source.loop.pair import find_pairs
from explainer.source.program import Program
from explainer.source.value.lineage import block_of

_COMPUTES = (ast.Assign, ast.AnnAssign, ast.AugAssign)


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
        is_open = _is_behind(backward, context.program)
        yield Proposal(
            edits=(
                remove_statement(file, first),
                add_argument(file, backward.call, f'inputs=[one for group in {own}.param_groups for one in group["params"]]'),
                insert_after(file, statement, lines_of(file, first)),
            ),
            culprit=culprit_of(file, first, f"changes the weights of `{other}` before this loss's backward reads them"),
            belief=0.8 + (1.0 if is_crash(file, backward.call, context) else 0.0),
            applicability="display" if is_open else None,
            because=f"whether this loss is to train `{other}` as well, or takes what it makes as data, only you know" if is_open else None,
        )  # fmt: skip


def _is_behind(backward: Backward, program: Program) -> bool:
    """Whether what a loss shares with the one before it is made by what stepped in between, and by nothing that it trains itself."""
    for pair in find_pairs(program):
        if pair.second.call is not backward.call:
            continue
        shared = [one for one in pair.second_lines if one in pair.first_lines and isinstance(one, _COMPUTES)]
        before, own = pair.stepped, pair.trained_later - pair.stepped
        is_made = any(calls_of(before, one, pair.file, program) for one in shared)
        return is_made and not any(calls_of(own, one, pair.file, program) for one in shared)
    return False


def _is_plain(backward: Backward) -> bool:
    """`loss.backward()` as a statement, without `inputs` or a gradient of its own."""
    call = backward.call
    is_alone = isinstance(backward.statement, ast.Expr) and backward.statement.value is call
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "backward" and not call.args
    return backward.is_plain and is_alone and is_method and all(one.arg == "retain_graph" for one in call.keywords)
