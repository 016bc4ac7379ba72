"""The log-probability of an action of several numbers is the sum over them: `dist.log_prob(action).sum(-1)`.

A `Normal` gives one for each number of an action, `[batch, actions]`, and advantages and returns are one for each sample. They are
independent, so that the logarithms add up; to repeat the advantage for each number instead would train another ratio.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen_shape import REFUSED
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.value.log_prob import LOG_PROB, are_of_numbers, is_of_log_prob


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all log-probabilities of a program, where one of them met what has a value for each sample."""
    if REFUSED.search(message_of(context)) is None or not are_of_numbers(context.program):
        return
    for file, statement in list(raised_at(context))[:1]:
        if not is_of_log_prob(statement, statement, file, context.program):
            continue
        found = [(where, one) for where in context.program.parsed() for one in where.walk() if _is_bare(one, where)]
        if found:
            yield Proposal(
                edits=tuple(put_method(where, one, ".sum(-1)") for where, one in found if isinstance(one, ast.expr)),
                culprit=culprit_of(
                    *found[-1], "gives a value for each number of an action, and the rest has one for each sample"
                ),
                belief=3.0,
            )


def _is_bare(node: ast.AST, file: SourceFile) -> bool:
    """Whether a node is a log-probability that nothing sums up in place."""
    is_one = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == LOG_PROB
    above = file.parents.get(node)
    return is_one and not (isinstance(above, ast.Attribute) and above.attr in ("sum", "mean"))
