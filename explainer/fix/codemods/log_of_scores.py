"""A logarithm of exponentials that were given names, picked, masked or summed on the way is computed from their scores.

`e = torch.exp(s)`, `p = e[rows, labels]` and `torch.log(p / e.sum(1))` become `s[rows, labels] - s.logsumexp(1)`. What is then read
no more is taken out. The forms of one expression are those of `stable_form`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.blame import anomaly_node, nearness
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before, remove_statement
from explainer.fix.log_space import Log, LogSpace, argument_of
from explainer.fix.rewrite import replace_whole
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.flow import Reach, flow_of
from explainer.source.tree import walk

_NODES = ("Exp", "Log", "Div", "Sum", "Softmax", "Index", "Gather", "MulBackward")
_WHY = "takes the logarithm of a quotient of exponentials, which overflow above 88 and round to 0 below -103"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for each function that takes such logarithms; all of them go together."""
    if not context.has_failed:
        return
    flow = flow_of(context.program)
    for file in context.program.parsed():
        found: dict[ast.AST, list[tuple[ast.Call, Log]]] = {}
        for node in file.walk():
            argument = argument_of(node, context.program.names(file), "log") if isinstance(node, ast.Call) else None
            if argument is None or not isinstance(node, ast.Call) or not flow.reach_of(argument, file):
                continue
            log = LogSpace(node, file, context.program).log(argument)
            scope = context.program.names(file).function_of(node) or file.tree
            if log is not None and scope is not None:
                found.setdefault(scope, []).append((node, log))
        for scope, logs in found.items():
            first = max((node for node, _ in logs), key=lambda one: nearness(file, one, context))
            node = anomaly_node(context)
            belief = 1.0 if flow.reach_of(first, file) == Reach.SURE else 0.0
            belief += 1.5 if node in _NODES else -0.3 if node else 0.0
            guilty = next((one for _, log in logs for one in log.scores), first)
            near = max(nearness(file, one, context) for one in (first, guilty))
            yield Proposal(
                edits=tuple(_edits(logs, scope, file)), culprit=culprit_of(file, guilty, _WHY), belief=belief + near
            )


def _edits(logs: list[tuple[ast.Call, Log]], scope: ast.AST, file: SourceFile) -> Iterator[Edit]:
    replaced: list[ast.AST] = [node for node, _ in logs]
    for node, log in logs:
        text = log.text if _is_alone(node, file) else log.operand
        yield replace_whole(file, node, text)
    seen = {name for _, log in logs for name in log.names}
    bound = {made: name for _, log in logs for name, made in log.bound.items()}
    for statement in _unread(seen, replaced, scope):
        if statement.value not in bound:
            yield remove_statement(file, statement)
    for made, name in bound.items():
        statement = file.statement(made)
        score = made.args[0] if made.args else made.func.value  # type: ignore[attr-defined]
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
