"""A hard decision that starves what comes before it keeps its value and gets the gradient of what it decides on.

`(h > 0).float() * 2 - 1` becomes `h + ((h > 0).float() * 2 - 1 - h).detach()`, and `torch.round(w / s)` becomes
`(w / s + (torch.round(w / s) - w / s).detach())`: the straight-through estimator. Only where the trace saw that it cuts a layer off.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand
from explainer.model.trace import CUT, STARVING_CUT
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.number import number_of

_CASTS = frozenset({"float", "to", "type", "type_as", "double", "half"})
_ROUNDS = frozenset({"round", "floor", "ceil", "trunc", "fix"})
_RISES = (ast.Gt, ast.GtE)  # a decision that falls with its tensor would get a gradient of the wrong sign


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each traced line with one comparison of a tensor with a number that is cast back."""
    for kind in (STARVING_CUT, CUT):
        for file, statement in traced_places(kind, context):
            yield from _rounded(file, statement, context.program)
            found = [node for node in walk(statement) if isinstance(node, ast.Compare)]
            whole = _decision(found[0], file, context.program) if len(found) == 1 else None
            if whole is None:
                continue
            name, text = file.segment(found[0].left), file.segment(whole)
            new = f"{name} + ({text} - {name}).detach()"
            above = file.parents.get(whole)
            stands_alone = isinstance(above, (ast.Return, ast.Assign, ast.keyword, ast.Call))
            yield Proposal(
                edits=(edit_of(file, whole, new if stands_alone else f"({new})"),),
                culprit=culprit_of(file, whole, f"decides on `{name}` by a comparison, which has no gradient"),
                belief=1.0,
            )


def _rounded(file: SourceFile, statement: ast.stmt, program: Program) -> Iterator[Proposal]:
    """The calls on a traced line that round what they are given."""
    names = program.names(file)
    for node in walk(statement):
        func = node.func if isinstance(node, ast.Call) else None
        method = func.attr if isinstance(func, ast.Attribute) else ""
        if not isinstance(node, ast.Call) or method not in _ROUNDS or not isinstance(func, ast.Attribute):
            continue
        if any(isinstance(one, ast.Attribute) and one.attr == "detach" for one in _above(node, file)):
            continue
        is_function = (names.qualified(func) or "").startswith("torch.")
        given = node.args[0] if is_function and node.args else func.value
        text, whole = operand(file, given), file.segment(node)
        yield Proposal(
            edits=(edit_of(file, node, f"({text} + ({whole} - {text}).detach())"),),
            culprit=culprit_of(file, node, f"`{method}` has a gradient of 0: nothing before it learns"),
            belief=2.0,
            because="the forward is the same, and the gradient is passed on as if nothing were rounded: an approximation",
        )


def _above(node: ast.AST, file: SourceFile) -> Iterator[ast.AST]:
    """What stands around an expression in its statement."""
    while (above := file.parents.get(node)) is not None and not isinstance(above, ast.stmt):
        yield above
        node = above


def _decision(compare: ast.Compare, file: SourceFile, program: Program) -> ast.expr | None:
    """The comparison with its cast back to numbers, and what is computed of that with numbers; None where nothing casts it."""
    names = program.names(file)
    is_one = len(compare.ops) == 1 and isinstance(compare.ops[0], _RISES) and dotted_name(compare.left) is not None
    if not is_one or number_of(compare.comparators[0], names) is None:
        return None
    node: ast.expr = compare
    is_cast = False
    while True:
        above = file.parents.get(node)
        call = file.parents.get(above) if isinstance(above, ast.Attribute) and above.attr in _CASTS else None
        if isinstance(call, ast.Call) and call.func is above:
            node, is_cast = call, True
        elif isinstance(above, ast.BinOp) and _keeps_sign(above, node, names):
            node = above
        else:
            return node if is_cast else None


def _keeps_sign(operation: ast.BinOp, part: ast.expr, names: Names) -> bool:
    """Whether a number is added to, or taken from, a part, or a positive one scales it."""
    is_left = operation.left is part
    number = number_of(operation.right if is_left else operation.left, names)
    if number is None:
        return False
    if isinstance(operation.op, ast.Add) or (isinstance(operation.op, ast.Sub) and is_left):
        return True
    return number > 0 and (isinstance(operation.op, ast.Mult) or (isinstance(operation.op, ast.Div) and is_left))
