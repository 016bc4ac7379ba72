"""A loss takes the value on which a helper decides, not its decision: `self.model(x)` for `self.predict(x)`.

    def predict(self, x):
        p = self.model(x)
        return (p > self.threshold).float()

The helper stays as it is: an evaluation counts its decisions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import dead_ends
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.inline import written_at
from explainer.source.file import SourceFile
from explainer.source.graph.cut import INTEGER, STEP
from explainer.source.name import Function
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of
from explainer.source.value.lineage import statements_of
from explainer.source.value.resolve import resolver_of

_DECIDES = frozenset({"argmax", "round", "sign", "ge", "gt", "le", "lt"})
_BECAUSE = "another function is optimized: the value stands for the decision"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each call of a deciding helper on the way to the failing loss."""
    if not context.has_failed:
        return
    for root, cut in dead_ends(context):
        helper = context.program.names(cut.file).function_of(cut.node)
        value = _value(cut.node, helper) if cut.kind in (STEP, INTEGER) and helper is not None else None
        if helper is not None and value is not None:
            yield from _given_value(helper, cut.file, value, root, context)


def _value(node: ast.AST, helper: Function) -> ast.expr | None:
    """What a helper's only `return` decides on; None where it does more than decide."""
    returns = [one for one in statements_of(helper) if isinstance(one, ast.Return)]
    if len(returns) != 1 or not any(one is node for one in walk(returns[0])):
        return None
    value: ast.expr | None = None
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        value = node.left
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _DECIDES:
        is_function = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
        value = node.args[0] if is_function and node.args else node.func.value
    if isinstance(value, ast.Name):
        made = [one for one in bounds_of(helper) if one.name == value.id]
        is_plain = len(made) == 1 and made[0].pick is None and not made[0].is_element and not made[0].fills
        return made[0].node if is_plain else None
    return value


def _given_value(
    helper: Function, file: SourceFile, value: ast.expr, root: Value, context: Context
) -> Iterator[Proposal]:
    """The value in place of the helper's call, in the function of the loss."""
    trains = context.program.names(root.file).function_of(root.node)
    for where, call in resolver_of(context.program).calls_of(helper, file):
        if where is not root.file or context.program.names(where).function_of(call) is not trains:
            continue
        text = written_at(Value(value, file), helper, call, where)
        if text is not None:
            yield Proposal(
                edits=(edit_of(where, call, text),),
                culprit=culprit_of(
                    where, call, f"gives the loss the decision of `{helper.name}`, which has no derivative"
                ),
                belief=2.2,
                applicability="unsafe",
                because=_BECAUSE,
            )
