"""`self.kept = [softmax(model(x)) ...]` becomes `softmax(model(x)).detach()`: what a network said before it goes on learning.

Learning without forgetting holds a network against its own earlier responses, `-(kept * log_softmax(model(x))).sum()`. Made anew in
each step they would say what the network says now: only as constants do they keep anything. It is told by a loss of probabilities
whose other side runs the same network, at the line where a trace saw it take up what was made once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.trace import ONCE, ONCE_MADE
from explainer.source.file import SourceFile
from explainer.source.loss.loss import loss_at
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, scope_of
from explainer.source.value.resolve import resolver_of

_WHY = "keeps the network's earlier responses with their graph, which the first step's backward uses up"
_CUTS = frozenset({"detach", "data", "item", "no_grad", "numpy", "tolist"})
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp)
_DIVERGENCES = frozenset({"kl_div", "KLDivLoss"})


def propose(context: Context) -> Iterator[Proposal]:
    """The edit of the one statement that records responses, where each loss that takes them up runs the same network."""
    program = context.program
    traced = traced_statements(ONCE_MADE, context, guesses=True)
    made = list(dict.fromkeys((file, statement) for _, file, statement in traced))
    taken = [(file, statement) for _, file, statement in traced_statements(ONCE, context)]
    if len(made) != 1 or not taken:
        return
    where, statement = made[0]
    value = _recorded(statement)
    if value is None or any(isinstance(one, ast.Attribute) and one.attr in _CUTS for one in walk(value)):
        return
    own = set(_networks(value, where, program))
    if own and all(own & set(_held_against(one, file, program)) for file, one in taken):
        edit = put_method(where, value, ".detach()")
        yield Proposal(edits=(edit,), culprit=culprit_of(where, statement, _WHY), belief=2.6, is_origin=True)


def _recorded(statement: ast.stmt) -> ast.expr | None:
    """What a statement keeps: the value that it assigns or appends, each one of a comprehension."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr)) else None
    if isinstance(statement, ast.Expr):
        is_append = (
            isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "append"
        )
        value = value.args[0] if is_append and isinstance(value, ast.Call) and value.args else None
    if (
        isinstance(value, ast.Call)
        and dotted_name(value.func) in ("list", "tuple", "torch.stack", "torch.cat")
        and value.args
    ):
        value = value.args[0] if isinstance(value.args[0], _COMPREHENSIONS) else value
    if isinstance(value, ast.DictComp):
        return value.value
    return value.elt if isinstance(value, _COMPREHENSIONS) else value


def _held_against(statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[ast.expr]:
    """The networks whose log-probabilities the function of a statement weighs with something, or holds in a divergence."""
    for node in walk(scope_of(statement, file)):
        sides: list[ast.expr] = []
        loss = loss_at(node, file, program) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = [one for one in (node.left, node.right) if _is_log_probability(one, file, program)]
        elif loss is not None and loss.name in _DIVERGENCES:
            sides = [loss.prediction]
        if len(sides) == 1:
            yield from _networks(sides[0], file, program)


def _is_log_probability(node: ast.expr, file: SourceFile, program: Program) -> bool:
    calls = [one.node.func for one in _behind_name(node, file, program) if isinstance(one.node, ast.Call)]
    return any(getattr(one, "attr", getattr(one, "id", "")) == "log_softmax" for one in calls)


def _networks(node: ast.expr, file: SourceFile, program: Program) -> Iterator[ast.expr]:
    """The constructors of the modules that an expression runs, also by the names that it reads."""
    whole = [(part, one.file) for one in _behind_name(node, file, program) for part in walk(one.node)]
    named = [each for part, where in whole if isinstance(part, ast.Name) for each in _behind_name(part, where, program)]
    for one in [*(Value(part, where) for part, where in whole if isinstance(part, ast.Call)), *named]:
        if isinstance(one.node, ast.Call):
            yield from (each.node for each in resolver_of(program).constructors_of(Value(one.node.func, one.file)))


def _behind_name(node: ast.expr, file: SourceFile, program: Program) -> list[Value]:
    """An expression, or what the name that it is was bound to."""
    value = Value(node, file)
    return list(resolver_of(program).behind(value)) if isinstance(node, ast.Name) else [value]
