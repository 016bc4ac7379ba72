"""What a method adds to the weights of its layer it adds under `no_grad`: `self.weight.add_(self.delta())` of a merged adapter.

With grad mode on a frozen weight becomes a result, with the graph of what was added, and each later backward goes back there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import under_no_grad
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.name import dotted_name
from explainer.source.network.module import inherits_module
from explainer.source.tree import walk

_WEIGHTS = frozenset(("weight", "bias"))
_ADDS = frozenset(("add_", "sub_", "addmm_", "lerp_"))


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all such statements of the methods of a module, but for its forward."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        for owner in (one for one in file.walk() if isinstance(one, ast.ClassDef)):
            written = list(_written(owner, file, context)) if inherits_module(owner, file, context.program) else []
            edits: list[Edit] = []
            for one in written:
                edits += under_no_grad(file, [one], context.program.names(file))
            if edits:
                yield Proposal(
                    edits=tuple(edits),
                    culprit=culprit_of(
                        file, written[0], "adds to a weight what has a graph, which the weight then carries"
                    ),
                    belief=2.4,
                )


def _written(owner: ast.ClassDef, file: SourceFile, context: Context) -> Iterator[ast.stmt]:
    """`self.weight.add_(...)`, `self.base.weight += ...` in a method that is no forward, with grad mode on."""
    for method in owner.body:
        if not isinstance(method, ast.FunctionDef) or method.name in ("forward", "__init__"):
            continue
        for node in walk(method):
            if not isinstance(node, (ast.Expr, ast.AugAssign)):
                continue
            call = node.value if isinstance(node, ast.Expr) else None
            is_add = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _ADDS
            target = node.target if isinstance(node, ast.AugAssign) else call.func.value if is_add else None  # type: ignore[union-attr]
            name = dotted_name(target) if target is not None else None
            if name is None or not name.startswith("self.") or name.rpartition(".")[2] not in _WEIGHTS:
                continue
            if not is_without_grad(node, file, context.program):
                yield node
