"""`x - x.mean(dim=1)` becomes `x - x.mean(dim=1, keepdim=True)`: what was reduced stands against the rows that it was made of.

Only where the two sides did not fit, which a reduction of another axis than the first is bound to do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.file import SourceFile
from explainer.source.graph.operation import broadcast_sides
from explainer.source.loss.weighting import factors_of
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_REDUCTIONS = frozenset(
    {"mean", "sum", "std", "var", "norm", "logsumexp", "amax", "amin", "prod", "nanmean", "median", "quantile"}
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each reduction on the line that raised, or behind a name in it, of what it is combined with."""
    for file, statement in list(raised_at(context))[:1]:
        for node in walk(statement):
            sides = broadcast_sides(node)
            for whole, part in (sides, sides[::-1]) if sides is not None else ():
                for where, call in _reductions(part, file, context.program):
                    if any(ast.unparse(one) in _reduced(call) for term in _terms(whole) for one in factors_of(term)[0]):
                        yield Proposal(
                            edits=(add_argument(where, call, "keepdim=True"),),
                            culprit=culprit_of(where, call, "drops the axis that it reduces, and no longer fits what it was made of"),
                            belief=2.0,
                        )  # fmt: skip


def _terms(node: ast.expr) -> list[ast.expr]:
    """The terms of a sum or difference."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return [*_terms(node.left), *_terms(node.right)]
    return [node]


def _reductions(node: ast.expr, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The reductions of one axis other than the first, not kept, that a side of an operation is made of."""
    for one in walk(node):
        if isinstance(one, ast.Call) and _is_reduction(one, file, program):
            yield file, one
        elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
            behind = [made for made in resolver_of(program).behind(Value(one, file)) if made.file is file]
            for made in behind if len(behind) == 1 and behind[0].pick is None else ():
                inner = [each for each in walk(made.node) if isinstance(each, ast.Call)]
                yield from ((file, each) for each in inner if _is_reduction(each, file, program))


def _is_reduction(call: ast.Call, file: SourceFile, program: Program) -> bool:
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in _REDUCTIONS:
        return False
    names = program.names(file)
    is_function = names.is_call(call, f"torch.{func.attr}")
    given = {one.arg: one.value for one in call.keywords}
    place = 1 if is_function or func.attr in ("norm", "quantile") else 0
    axis = given.get("dim", given.get("axis", call.args[place] if len(call.args) > place else None))
    if "keepdim" in given or None in given or axis is None or len(call.args) > place + 1:
        return False
    number = number_of(axis, names)
    return isinstance(axis, (ast.Tuple, ast.List)) or (number is not None and number != 0)


def _reduced(call: ast.Call) -> set[str]:
    """What a reduction reduces, as text: `x` of `x.mean(1)`, of `x.pow(2).sum(1)` and of `torch.norm(x, dim=1)`."""
    assert isinstance(call.func, ast.Attribute)
    return {
        ast.unparse(one)
        for root in (call.func.value, *call.args[:1])
        for one in walk(root)
        if isinstance(one, ast.expr)
    }
