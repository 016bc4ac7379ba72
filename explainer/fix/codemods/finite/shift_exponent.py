"""A softmax that is written in steps subtracts the largest score before it exponentiates, as `torch.softmax` does.

`w = torch.exp(e)` and `a = w / w.sum(1, keepdim=True)`: `torch.exp(e - e.detach().amax(1, keepdim=True))`. Where the sum is one
over the edges of a node, `index_add_` or `scatter_add_`, the largest score is that of the node. Masks multiplied in between do
not matter: the factor that is taken out cancels in the quotient. Not where the exponential is used for anything else.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from explainer.fix.clue.blame import anomaly_node, nearness
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bind_call, scope_of
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.resolve import resolver_of
from explainer.source.value.sign import definition_of

_NODES = ("Exp", "Div", "IndexAdd", "ScatterAdd", "Sum")
_REDUCED = {"index_add_": "index_reduce", "index_add": "index_reduce", "scatter_add_": "scatter_reduce", "scatter_add": "scatter_reduce"}  # fmt: skip
_WHY = "exponentiates scores as they are: above 88 that is inf in float32, and inf / inf is NaN"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each exponential that a quotient divides by a sum of the same exponentials."""
    if not context.has_failed:
        return
    flow = flow_of(context.program)
    for file in context.program.parsed():
        for node in file.walk():
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
                continue
            power = _power(node.left, file, context.program)
            score = _score(power) if power is not None else None
            reach = flow.reach_of(power, file) if power is not None else None
            if power is None or score is None or not reach:
                continue
            largest = _largest(node, score, file, context.program)
            if largest is None:
                continue
            text = f"{file.segment(score)} - {largest}"
            belief = 1.0 if reach == Reach.SURE else 0.0
            belief += 1.5 if anomaly_node(context) in _NODES else -0.3 if anomaly_node(context) else 0.0
            yield Proposal(
                edits=(edit_of(file, score, text if score in power.args else f"({text})"),),
                culprit=culprit_of(file, power, _WHY),
                belief=belief + nearness(file, power, context),
            )


def _power(node: ast.expr, file: SourceFile, program: Program) -> ast.Call | None:
    """The exponential that a name stands for, seen through products: `w` of `w = torch.exp(e)`, `w = w * mask`."""
    for _ in range(4):
        if isinstance(node, ast.Call) and _score(node) is not None:
            return node if _is_exp(node, file, program) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = [_power(one, file, program) for one in (node.left, node.right)]
            return next((one for one in sides if one is not None), None)
        value = definition_of(node, file, program) if isinstance(node, ast.Name) else None
        if value is None:
            return None
        node = value
    return None


def _is_exp(node: ast.Call, file: SourceFile, program: Program) -> bool:
    called = program.names(file).qualified(node.func) or ""
    return called == "torch.exp" or (
        getattr(node.func, "attr", "") == "exp" and not called.startswith(("numpy", "math"))
    )


def _score(node: ast.Call) -> ast.expr | None:
    """What is exponentiated, where it has a name and so may be written twice: `e` of `torch.exp(e)` and of `e.exp()`."""
    if not isinstance(node.func, ast.Attribute) or node.keywords or len(node.args) > 1:
        return None
    score = node.args[0] if node.args else node.func.value
    return score if dotted_name(score) is not None else None


def _largest(node: ast.BinOp, score: ast.expr, file: SourceFile, program: Program) -> str | None:
    """The largest score of what a quotient's divisor sums, as text; None where it does not sum these exponentials alone."""
    value, index = _sum_of(node.right, file, program)
    if not isinstance(node.left, ast.Name) or _is_used_elsewhere(node.left.id, node, value, file):
        return None
    if isinstance(value, ast.Call) and index is not None and (helper := _helper(value, file, program)) is not None:
        return _largest_by(helper, node.left.id, score, index, file)
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    scores, method = f"{operand(file, score)}.detach()", value.func.attr
    summed = value.args[-1] if method in _REDUCED and len(value.args) == 3 and not value.keywords else None
    if summed is not None:
        dim, where, _ = (file.segment(one) for one in value.args)
        if not _is_name(summed, node.left.id) or index is None or file.segment(index) != where or dim != "0":
            return None
        base = file.segment(value.func.value)
        return f'{base}.{_REDUCED[method]}(0, {where}, {scores}, "amax", include_self=False)[{where}]'
    rest = [*value.args, *(one.value for one in value.keywords)]
    if method != "sum" or index is not None or not any(one.arg == "keepdim" for one in value.keywords):
        return None
    owner = value.args[0] if program.names(file).qualified(value.func) == "torch.sum" else value.func.value
    dims = [file.segment(one) for one in value.args if one is not owner]
    dims += [file.segment(one.value) for one in value.keywords if one.arg in ("dim", "axis")]
    is_whole = len(dims) == 1 and len(rest) <= 3
    return f"{scores}.amax({dims[0]}, keepdim=True)" if is_whole and _is_name(owner, node.left.id) else None


def _helper(
    call: ast.Call, file: SourceFile, program: Program
) -> tuple[ast.Call, ast.expr, dict[str, ast.expr]] | None:
    """The `index_add` that a function of the same file gives back, what it adds to, and the arguments of the call by parameter."""
    found = resolver_of(program).function_of(call, Value(call.func, file))
    if found is None or found[0] is not file:
        return None
    function = found[1]
    sums = [
        one
        for one in walk(function)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _REDUCED
    ]
    last = function.body[-1]
    if len(sums) != 1 or len(sums[0].args) != 3 or not isinstance(last, ast.Return) or last.value is None:
        return None
    added = sums[0].func.value  # type: ignore[attr-defined]
    if last.value is not sums[0] and not (isinstance(added, ast.Name) and _is_name(last.value, added.id)):
        return None
    base = definition_of(added, file, program) if isinstance(added, ast.Name) else added
    bound = bind_call(call, function, Value(call, file))
    return (sums[0], base, {name: one.node for name, one in bound.items()}) if base is not None else None


def _largest_by(
    helper: tuple[ast.Call, ast.expr, dict[str, ast.expr]],
    name: str,
    score: ast.expr,
    index: ast.expr,
    file: SourceFile,
) -> str | None:
    """The largest score of each node, where a helper sums the exponentials of the edges."""
    added, base, given = helper
    dim, where, summed = added.args
    reads = given.get(getattr(where, "id", ""))
    sums = given.get(getattr(summed, "id", ""))
    if ast.unparse(dim) != "0" or reads is None or sums is None or not _is_name(sums, name):
        return None
    if ast.unparse(reads) != ast.unparse(index):
        return None
    text = ast.unparse(_Given({**given, summed.id: score}).visit(copy.deepcopy(base)))  # type: ignore[attr-defined]
    method, at = _REDUCED[added.func.attr], file.segment(index)  # type: ignore[attr-defined]
    return f'{text}.{method}(0, {at}, {operand(file, score)}.detach(), "amax", include_self=False)[{at}]'


class _Given(ast.NodeTransformer):
    """Puts the arguments of a call in place of the parameters."""

    def __init__(self, given: dict[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._given.get(node.id, node)


def _sum_of(node: ast.expr, file: SourceFile, program: Program) -> tuple[ast.expr | None, ast.expr | None]:
    """The sum behind a divisor, without a small constant that is added, and by what it is indexed."""
    index: ast.expr | None = None
    for _ in range(4):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant):
            node = node.left
        elif isinstance(node, ast.Subscript) and index is None:
            index = node.slice
            node = node.value
        elif isinstance(node, ast.Name) and (value := definition_of(node, file, program)) is not None:
            node = value
        else:
            break
    return node, index


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_used_elsewhere(name: str, quotient: ast.BinOp, summed: ast.expr | None, file: SourceFile) -> bool:
    """Whether something but the quotient, its sum and products of itself reads the exponential."""
    allowed = set(walk(quotient)) | set(walk(summed) if summed is not None else ())
    for one in walk(scope_of(quotient, file)):
        is_sum = isinstance(one, ast.Call) and getattr(one.func, "attr", "") in ("sum", *_REDUCED)
        if is_sum or (
            isinstance(one, ast.Assign) and isinstance(one.value, ast.BinOp) and _is_name(one.targets[0], name)
        ):
            allowed |= set(walk(one))
    return any(
        isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load) and one not in allowed
        for one in walk(scope_of(quotient, file))
    )
