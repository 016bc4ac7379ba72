"""A derivative is asked for by the very weights that the forward ran with.

`grad(loss, tuple(weights.values()))` for `grad(loss, tuple(net.parameters()))` where the loss comes from `functional_call(net,
weights, (x,))`; and `functional_call(net, weights, (x,))` for `net(x)` where the gradient is asked for by `weights.values()`,
a dictionary made of the parameters of the module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import spell
from explainer.source.file import SourceFile
from explainer.source.graph.cut import asked_of_grad
from explainer.source.graph.given_weights import FUNCTIONAL_CALLS, weights_behind
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, scope_of
from explainer.source.value.lineage import lineage, value_of

_UNUSED = "not have been used in the graph"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the derivative on the line that failed, of what it is asked for by or of the forward behind it."""
    if _UNUSED not in message_of(context):
        return
    for file, statement in list(raised_at(context))[:1]:
        names = context.program.names(file)
        calls = [
            one for one in walk(statement) if isinstance(one, ast.Call) and names.is_call(one, "torch.autograd.grad")
        ]
        pair = asked_of_grad(calls[0]) if len(calls) == 1 else None
        if pair is None:
            return
        given = weights_behind(pair[0], statement, file, context.program)
        if given:
            yield from _by_given(pair[1], given, file)
        else:
            yield from _run_with(*pair, statement, file, context)


def _by_given(wanted: ast.expr, given: set[str], file: SourceFile) -> Iterator[Proposal]:
    """`net.parameters()` among what the gradient is asked for by becomes the values of the weights of the forward."""
    own = [one for one in walk(wanted) if _is_call_of(one, "parameters")]
    if len(own) != 1 or len(given) != 1:
        return
    weights = next(iter(given))
    yield Proposal(
        edits=(edit_of(file, own[0], f"{weights}.values()"),),
        culprit=culprit_of(
            file, own[0], f"the loss was computed with `{weights}`, not with the module's own parameters"
        ),
        belief=2.6,
    )


def _run_with(
    output: ast.expr, wanted: ast.expr, at: ast.stmt, file: SourceFile, context: Context
) -> Iterator[Proposal]:
    """`net(x)` behind the output runs with the weights that the gradient is asked for by."""
    names = context.program.names(file)
    values = [one.func.value for one in walk(wanted) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
              and one.func.attr == "values"]  # fmt: skip
    adapted = dotted_name(values[0]) if len(values) == 1 else None
    scope = scope_of(wanted, file)
    owners = {_module_of(one.node) for one in bounds_of(scope) if one.name == adapted} - {None}
    if adapted is None or len(owners) != 1:
        return
    owner = owners.pop()
    computed = [output, *(value_of(one) for one in lineage(output, at, file, context.program))]
    for call in dict.fromkeys(one for value in computed if value is not None for one in walk(value)):
        if isinstance(call, ast.Call) and dotted_name(call.func) == owner and not call.keywords:
            inputs = ", ".join(file.segment(one) for one in call.args)
            comma = "," if len(call.args) == 1 else ""
            run = spell(names, FUNCTIONAL_CALLS[0])
            yield Proposal(
                edits=(edit_of(file, call, f"{run}({owner}, {adapted}, ({inputs}{comma}))"),),
                culprit=culprit_of(file, call, f"runs with the module's own parameters, not with `{adapted}`"),
                belief=2.0,
            )


def _module_of(node: ast.expr) -> str | None:
    """`net` of a dictionary that is made of `net.named_parameters()`, whatever is done to each of them."""
    lists = [one for one in walk(node) if _is_call_of(one, "named_parameters")]
    if len(lists) != 1 or not isinstance(lists[0], ast.Call) or not isinstance(lists[0].func, ast.Attribute):
        return None
    return dotted_name(lists[0].func.value)


def _is_call_of(node: ast.AST, method: str) -> bool:
    """Whether a node is `module.method()`."""
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method
    return is_method and not node.args and not node.keywords  # type: ignore[attr-defined]
