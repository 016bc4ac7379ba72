"""A logarithm of exponentials that were given names, picked, masked or summed on the way is computed from their scores.

`e = torch.exp(s)`, `p = e[rows, labels]` and `torch.log(p / e.sum(1))` become `s[rows, labels] - s.logsumexp(1)`. What is then read
no more is taken out. The forms of one expression are those of `stable_form`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.blame import anomaly_node, nearness
from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before, remove_statement
from explainer.fix.loss.log_space import Log, LogSpace, argument_of
from explainer.fix.text.rewrite import replace_whole
from explainer.model.patch import Edit
from explainer.model.trace import NOT_FINITE
from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.tree import walk
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.lineage import Scope, scope_of

_NODES = ("Exp", "Log", "Div", "Sum", "Softmax", "Index", "Gather", "MulBackward")
_WHY = "takes the logarithm of a quotient of exponentials, which overflow above 88 and round to 0 below -103"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for each function that takes such logarithms; all of them go together."""
    if not context.has_failed:
        return
    # A traced line had a gradient, whatever the source lets one see of it.
    known = frozenset(one for line, _, one in traced_statements(NOT_FINITE, context) if line.node)
    for file in context.program.parsed():
        found: dict[Scope, list[tuple[ast.Call, Log]]] = {}
        for node, log in _logarithms(file, context):
            scope = scope_of(node, file, context.program)
            if scope is not None:
                found.setdefault(scope, []).append((node, log))
        for scope, logs in found.items():
            parts = [part for node, log in logs for part in (node, *log.scores)]
            reach = max(flow_of(context.program).reach_of(one, file) for one in parts)
            if reach == Reach.NONE and not any(file.statement(one) in known for one in parts):
                continue
            guilty = next((one for _, log in logs for one in log.scores), logs[0][0])
            yield Proposal(
                edits=tuple(_edits(logs, scope, file, context.program.names(file))),
                culprit=culprit_of(file, guilty, _WHY),
                belief=_belief(reach, context) + max(nearness(file, one, context) for one in parts),
            )


def _logarithms(file: SourceFile, context: Context) -> Iterator[tuple[ast.Call, Log]]:
    names = context.program.names(file)
    for node in file.walk():
        argument = argument_of(node, names, "log") if isinstance(node, ast.Call) else None
        if argument is None or not isinstance(node, ast.Call):
            continue
        log = LogSpace(node, file, context.program).log(argument)
        if log is not None:
            yield node, log


def _belief(reach: Reach, context: Context) -> float:
    node = anomaly_node(context)
    return (1.0 if reach == Reach.SURE else 0.0) + (1.5 if node in _NODES else -0.3 if node else 0.0)


def _edits(logs: list[tuple[ast.Call, Log]], scope: Scope, file: SourceFile, names: Names) -> Iterator[Edit]:
    replaced: list[ast.AST] = [node for node, _ in logs]
    for node, log in logs:
        text = log.text if _is_alone(node, file) else log.operand
        yield replace_whole(file, node, text)
    seen = {name for _, log in logs for name in log.names}
    bound: dict[ast.Call, str] = {made: name for _, log in logs for name, made in log.bound.items()}
    for unread in _unread(seen, replaced, scope):
        if unread.value not in bound:
            yield remove_statement(file, unread)
    for made, name in bound.items():
        statement = file.statement(made)
        score = argument_of(made, names, "exp") or argument_of(made, names, "softmax")
        assert score is not None
        if statement in replaced:
            assert isinstance(statement, ast.Assign)
            yield edit_of(file, statement.targets[0], name)
            yield edit_of(file, made, file.segment(score))
        else:
            yield insert_before(file, statement, f"{name} = {file.segment(score)}")
            yield edit_of(file, score, name)


def _unread(names: set[str], replaced: list[ast.AST], scope: ast.AST) -> Iterator[ast.Assign]:
    """The assignments of some names that nothing reads once other parts of a function are gone; they are added to these."""
    made = [
        one
        for one in walk(scope)
        if isinstance(one, ast.Assign)
        and len(one.targets) == 1
        and isinstance(one.targets[0], ast.Name)
        and one.targets[0].id in names
    ]
    for one in reversed(made):
        target = one.targets[0]
        gone = {id(part) for node in replaced for part in walk(node)}
        reads = [
            node
            for node in walk(scope)
            if isinstance(node, ast.Name) and node.id == getattr(target, "id", None) and id(node) not in gone
        ]
        if all(node is target for node in reads):
            replaced.append(one)
            yield one


def _is_alone(node: ast.AST, file: SourceFile) -> bool:
    """Whether nothing round an expression binds tighter than a sum."""
    above = file.parents.get(node)
    is_argument = isinstance(above, ast.Call) and above.func is not node
    return is_argument or isinstance(above, (ast.Assign, ast.Return, ast.keyword, ast.Expr, ast.AnnAssign))
