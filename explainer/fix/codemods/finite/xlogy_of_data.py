"""Data times its own logarithm is written so that 0 log 0 is 0: `t * (t.log() - q)` becomes `torch.xlogy(t, t) - t * q`.

Only for what has no graph, as targets and votes: the gradient of `xlogy` to its first argument is infinite at 0.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.blame import nearness
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import operand, replace_whole, spell
from explainer.source.name import Names, dotted_name
from explainer.source.value.flow import Reach, flow_of

_WHY = "multiplies `{name}` with its own logarithm: where it is 0, 0 times -inf is NaN"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each product of a name with its logarithm, or with a difference that begins with it, in a loss."""
    if not context.has_failed:
        return
    flow = flow_of(context.program)
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            product = _product(node, names) if isinstance(node, ast.BinOp) else None
            if product is None or not isinstance(node, ast.BinOp):
                continue
            value, rest = product
            reach = flow.reach_of(rest, file) if rest is not None else Reach.SURE
            if not reach or flow.reach_of(value, file) == Reach.SURE:
                continue
            text = file.segment(value)
            new = f"{spell(names, 'torch.xlogy')}({text}, {text})"
            new += f" - {text} * {operand(file, rest)}" if rest is not None else ""
            binds_closer = isinstance(file.parents.get(node), (ast.BinOp, ast.UnaryOp, ast.Attribute))
            yield Proposal(
                edits=(replace_whole(file, node, f"({new})" if binds_closer and rest is not None else new),),
                culprit=culprit_of(file, node, _WHY.format(name=text)),
                belief=(1.8 if reach == Reach.SURE else 0.6) + nearness(file, node, context),
            )


def _product(node: ast.BinOp, names: Names) -> tuple[ast.expr, ast.expr | None] | None:
    """`t` and `q` of `t * (t.log() - q)`, `t` and None of `t * t.log()`, in either order."""
    if not isinstance(node.op, ast.Mult):
        return None
    for value, other in ((node.left, node.right), (node.right, node.left)):
        if dotted_name(value) is None:
            continue
        if _is_log_of(other, value, names):
            return value, None
        is_difference = isinstance(other, ast.BinOp) and isinstance(other.op, ast.Sub)
        if is_difference and isinstance(other, ast.BinOp) and _is_log_of(other.left, value, names):
            return value, other.right
    return None


def _is_log_of(node: ast.expr, value: ast.expr, names: Names) -> bool:
    """Whether a node is `value.log()` or `torch.log(value)`, with nothing added to the value."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "log":
        return False
    given = node.args[0] if names.qualified(node.func) == "torch.log" and node.args else node.func.value
    return ast.dump(given) == ast.dump(value)
