"""A reduction that a trace saw pass the range of float16 adds up in float32: `z.float().square().sum()` for `z.square().sum()`.

Each of its values was in range, and their sum ends at 65504. The cast stands before what is reduced, whose squares may be near the end too.
So do powers: `x.float().pow(2)` for `x.pow(2)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.trace import NOT_FINITE
from explainer.source.name import Names, dotted_name
from explainer.source.tree import walk
from explainer.source.value.flow import flow_of

_REDUCTIONS = frozenset({"sum", "mean", "norm", "logsumexp", "cumsum", "prod", "vector_norm", "nansum", "var", "std"})
_POINTWISE = frozenset({"square", "pow", "abs", "exp", "mul", "flatten", "view", "reshape"})
_POWERS = frozenset({"pow", "square", "mul"})
_NARROW = "traced_float16_infinity"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the reductions of that name on the line where the first infinity was made, of finite values in float16."""
    narrow = context.incident.fact(_NARROW)
    if narrow is None or narrow.value not in _REDUCTIONS | _POWERS:
        return
    for line, file, statement in list(traced_statements(NOT_FINITE, context))[:1]:
        names = context.program.names(file)
        taken = _reduced if line.operation in _REDUCTIONS else _raised
        reduced = [one for node in walk(statement) if (one := taken(node, line.operation, names)) is not None]
        # A count beside it is a whole number.
        reduced = [one for one in reduced if flow_of(context.program).reach_of(one, file)] or reduced
        if reduced:
            yield Proposal(
                edits=tuple(put_method(file, _begun(one), ".float()") for one in reduced),
                culprit=culprit_of(
                    file,
                    reduced[0],
                    f"`{line.operation}` {'adds up' if taken is _reduced else 'computes'} in float16, which ends at 65504",
                ),
                belief=2.0,
            )


def _reduced(node: ast.AST, operation: str, names: Names) -> ast.expr | None:
    """What a node reduces by an operation: `x` of `x.sum()`, of `torch.sum(x)`; none that has a dtype of its own."""
    if not isinstance(node, ast.Call) or any(one.arg == "dtype" for one in node.keywords):
        return None
    called = names.qualified(node.func) or ""
    if called.startswith("torch.") and called.rpartition(".")[2] == operation:
        return node.args[0] if node.args else None
    is_method = isinstance(node.func, ast.Attribute) and node.func.attr == operation and not called.startswith("torch.")
    return node.func.value if is_method and isinstance(node.func, ast.Attribute) else None


def _raised(node: ast.AST, operation: str, names: Names) -> ast.expr | None:
    """What a node raises to a power: `x` of `x.pow(2)`, `x ** 2`, `x.square()`, `x * x`."""
    if isinstance(node, ast.BinOp):
        is_square = isinstance(node.op, ast.Mult) and ast.dump(node.left) == ast.dump(node.right) and operation == "mul"
        return node.left if is_square or (isinstance(node.op, ast.Pow) and operation == "pow") else None
    return _reduced(node, operation, names) if operation != "mul" else None


def _begun(node: ast.expr) -> ast.expr:
    """Where a chain of pointwise operations begins: `z` of `z.square()`."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _POINTWISE
        and dotted_name(node.func.value) != "torch"
    ):
        node = node.func.value
    return node
