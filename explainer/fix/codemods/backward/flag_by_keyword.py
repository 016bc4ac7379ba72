"""A flag that stands where autograd takes gradients is given by name: `loss.backward(True)` becomes `loss.backward(retain_graph=True)`.

The third argument of `torch.autograd.grad` is `grad_outputs`; a flag there means `create_graph`, which keeps the graph as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.patch import Edit
from explainer.source.name import Names
from explainer.source.tree import walk

_NAMED = (
    "a name says which flag it is: `retain_graph` only keeps the graph, `create_graph` makes one of the gradients too"
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the call of the failing statement whose last positional argument is a flag."""
    if not context.has_failed:
        return
    for file, statement in failing_statements(context)[:1]:
        for node in walk(statement):
            found = _place(node, context.program.names(file)) if isinstance(node, ast.Call) else None
            if not isinstance(node, ast.Call) or found is None or len(node.args) != found[0] + 1:
                continue
            flag = node.args[found[0]]
            given = {one.arg for one in node.keywords}
            if found[1] in given or not _may_be_flag(flag):
                continue
            start = file.span(flag)[0]
            yield Proposal(
                edits=(Edit(file=file.path, start=start, end=start, new=f"{found[1]}="),),
                culprit=culprit_of(file, flag, "a flag, where autograd takes the gradients that backward begins with"),
                belief=2.0,
                applicability="unsafe" if found[1] == "create_graph" and not _speaks_of_graphs(flag) else None,
                because=_NAMED,
            )


def _place(call: ast.Call, names: Names) -> tuple[int, str] | None:
    """Which positional argument of a call of autograd takes gradients, and which flag was meant there."""
    called = names.qualified(call.func)
    if called == "torch.autograd.grad":
        return 2, "create_graph"
    if called == "torch.autograd.backward":
        return 1, "retain_graph"
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
    return (0, "retain_graph") if is_method else None


def _may_be_flag(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool)
    return isinstance(node, (ast.Name, ast.Attribute, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Subscript))


def _speaks_of_graphs(flag: ast.expr) -> bool:
    """Whether the names in a flag tell that gradients are differentiated again."""
    return any(word in ast.unparse(flag).lower() for word in ("order", "create_graph", "hessian", "penalty", "meta"))
