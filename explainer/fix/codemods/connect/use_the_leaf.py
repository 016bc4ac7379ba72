"""`critic(between)` for `critic(mix * real + (1 - mix) * fake)`: the derivative is asked for by a tensor that was computed of the same.

The same words compute another tensor, which the one that requires grad has no part in.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import replace_whole
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.lineage import definitions, scope_of

_UNUSED = "appears to not have been used in the graph"
_DRAW = re.compile(r"rand|normal|dropout|bernoulli|multinomial|sample|noise", re.IGNORECASE)
_MARKS = frozenset({"requires_grad_", "detach", "clone"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for what is computed a second time between the tensor and the derivative by it."""
    if _UNUSED not in message_of(context):
        return
    for file, statement in list(raised_at(context))[:1]:
        scope = scope_of(statement, file, context.program)
        calls = [
            one
            for one in walk(statement)
            if isinstance(one, ast.Call) and context.program.names(file).is_call(one, "torch.autograd.grad")
        ]
        if scope is None or len(calls) != 1:
            return
        given = calls[0].args[1:2] or [one.value for one in calls[0].keywords if one.arg == "inputs"]
        for leaf in (one for part in given for one in walk(part) if isinstance(one, ast.Name)):
            made = [one for one in definitions(leaf.id, statement, scope) if isinstance(one, ast.Assign)]
            computed = _unmarked(made[0].value) if len(made) == 1 else None
            if computed is None or isinstance(computed, (ast.Name, ast.Attribute, ast.Constant)) or _draws(computed):
                continue
            again = [
                one
                for one in walk(scope)
                if isinstance(one, ast.expr)
                and made[0].lineno < one.lineno <= statement.lineno
                and one is not computed
                and ast.dump(one) == ast.dump(computed)
            ]
            if again:
                yield Proposal(
                    edits=tuple(replace_whole(file, one, leaf.id) for one in again),
                    culprit=culprit_of(file, again[0], f"computes what `{leaf.id}` holds once more, without it"),
                    belief=2.6,
                )


def _draws(node: ast.expr) -> bool:
    """Whether an expression draws: said again it gives other values."""
    called = (dotted_name(one.func) or "" for one in walk(node) if isinstance(one, ast.Call))
    return any(_DRAW.search(one) for one in called)


def _unmarked(node: ast.expr) -> ast.expr:
    """What a leaf is made of: `a + b` of `(a + b).detach().requires_grad_(True)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MARKS:
        node = node.func.value
    return node
