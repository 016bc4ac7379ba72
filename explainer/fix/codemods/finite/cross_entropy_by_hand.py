"""`-F.binary_cross_entropy(p, y, reduction="none")` for `y * torch.log(p) + (1 - y) * torch.log(1 - p)`.

The same values and gradients wherever both are finite; torch bounds each logarithm at -100, where the one written by hand is -inf
and 0 times that is NaN. A floor under the probability instead would leave no gradient where it has rounded to 0.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.blame import nearness
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.loss.log_space import called_with
from explainer.fix.text.rewrite import replace_whole, spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.value.flow import flow_of
from explainer.source.value.number import number_of

_REDUCTIONS = frozenset({"mean", "sum"})
_BOUNDED = "torch.nn.functional.binary_cross_entropy"
Pair = tuple[ast.expr, ast.expr]


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each sum of the two terms through which a gradient passes."""
    if not context.has_failed:
        return
    flow = flow_of(context.program)
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            found = _chance_and_label(node, names) if isinstance(node, ast.BinOp) else None
            if found is None or not isinstance(node, ast.BinOp) or not flow.reach_of(found[0], file):
                continue
            minus = _minus_above(node, file)
            sign = "-" if minus is None and isinstance(node.op, ast.Add) else ""
            chance, label = map(file.segment, found)
            taken = f'{sign}{spell(names, _BOUNDED)}({chance}, {label}, reduction="none")'
            yield Proposal(
                edits=(*_without(minus, file), replace_whole(file, node, taken)),
                culprit=culprit_of(
                    file, node, f"takes the logarithms of `{chance}` and of 1 less it, one of which can be of 0"
                ),
                belief=2.0 + nearness(file, node, context),
            )


def _minus_above(node: ast.BinOp, file: SourceFile) -> ast.UnaryOp | None:
    """The minus before a sum of the two terms, or before its mean or sum: `-(...)`, `-(...).mean()`, `-torch.mean(...)`."""
    below: ast.AST = node
    above = file.parents.get(node)
    while isinstance(node.op, ast.Add) and above is not None:
        if isinstance(above, ast.UnaryOp):
            return above if isinstance(above.op, ast.USub) else None
        is_method = isinstance(above, ast.Attribute) and above.attr in _REDUCTIONS
        is_call = isinstance(above, ast.Call) and (above.func is below or _reduces(above, below))
        if not is_method and not is_call:
            return None
        below, above = above, file.parents.get(above)
    return None


def _reduces(call: ast.Call, value: ast.AST) -> bool:
    """Whether a call takes the mean or the sum of a value."""
    return bool(call.args) and call.args[0] is value and getattr(call.func, "attr", "") in _REDUCTIONS


def _without(minus: ast.UnaryOp | None, file: SourceFile) -> Iterator[Edit]:
    """The edit that takes a minus out."""
    if minus is not None:
        start = file.span(minus)[0]
        yield Edit(file=file.path, start=start, end=start + 1, new="")


def _chance_and_label(node: ast.BinOp, names: Names) -> Pair | None:
    """`p` and `y` of `y * log(p) + (1 - y) * log(1 - p)`, in any order, and of `-y * log(p) - (1 - y) * log(1 - p)`."""
    if not isinstance(node.op, (ast.Add, ast.Sub)):
        return None
    first, second = _term(node.left, names, is_negative=isinstance(node.op, ast.Sub)), _term(node.right, names)
    if first is None or second is None:
        return None
    for (chance, label), (rest, other) in ((first, second), (second, first)):
        if _is_rest(rest, chance, names) and _is_rest(other, label, names):
            return chance, label
    return None


def _term(node: ast.expr, names: Names, *, is_negative: bool = False) -> Pair | None:
    """`p` and `y` of `y * log(p)`, of `-y * log(p)` where it is negative."""
    if is_negative and isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _term(node.operand, names)
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    left, right = node.left, node.right
    if is_negative:
        if not isinstance(left, ast.UnaryOp) or not isinstance(left.op, ast.USub):
            return None
        left = left.operand
    for label, taken in ((left, right), (right, left)):
        chance = called_with(taken, names, "log")
        below = called_with(taken, names, "log1p")
        if below is not None and isinstance(below, ast.UnaryOp) and isinstance(below.op, ast.USub):
            chance = ast.BinOp(left=ast.Constant(value=1), op=ast.Sub(), right=below.operand)
        if chance is not None:
            return chance, label
    return None


def _is_rest(node: ast.expr, of: ast.expr, names: Names) -> bool:
    """Whether a node is 1 less another one."""
    is_difference = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and number_of(node.left, names) == 1.0
    return is_difference and isinstance(node, ast.BinOp) and ast.dump(node.right) == ast.dump(of)
