"""The average that makes one network follow another is taken under `no_grad`: `slow.mul_(m).add_((1 - m) * fast)`.

With grad mode on, weights that require no grad get the graph of the other network's, and every later forward goes back through
all the averages before it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import under_no_grad
from explainer.source.graph.write import is_without_grad
from explainer.source.network.follower import followers
from explainer.source.tree import walk


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each loop that writes the weights of one network from those of another with grad mode on."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        for loop in (one for one in file.walk() if isinstance(one, ast.For)):
            writes = [
                one for one in loop.body if isinstance(one, ast.Expr) and any(followers(one, file, context.program))
            ]
            is_of_values = any(
                isinstance(node, ast.Attribute) and node.attr == "data" for one in writes for node in walk(one)
            )
            if not writes or is_of_values or any(is_without_grad(one, file, context.program) for one in writes):
                continue
            yield Proposal(
                edits=under_no_grad(file, [loop], context.program.names(file)),
                culprit=culprit_of(file, writes[0], "gives the weights of one network the graph of the other's"),
                belief=2.6,
            )
