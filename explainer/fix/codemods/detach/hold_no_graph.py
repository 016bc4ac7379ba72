"""Memory that fills up with graphs: an evaluation that builds one, and values of a step that are kept with theirs.

An evaluation that runs out of memory goes under `torch.no_grad()`: the whole function where it only evaluates, else its loop. What
a training loop collects beside its loss, `total += loss`, `history.append(scores)`, is kept as `loss.detach()`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.fix.text.rewrite import put_method, spell, under_no_grad
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.loop.backward import find_backwards
from explainer.source.loop.carried import holds_graph, training_loops
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, scope_of
from explainer.source.value.callee import callees_of
from explainer.source.value.lineage import lineage, reads

_MEMORY = re.compile(r"out of memory|not enough memory|failed to allocate", re.IGNORECASE)
_EVALUATES = re.compile(r"eval|valid|test|infer|predict|sampl|generat|embed", re.IGNORECASE)
_KEEPS = frozenset({"append", "extend", "appendleft", "add"})
_DEPTH = 3


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each evaluation that the traceback goes through, and for each value that a training loop keeps."""
    if not _MEMORY.search(message_of(context)):
        return
    yield from _evaluations(context)
    yield from _kept(context)


def _evaluations(context: Context) -> Iterator[Proposal]:
    """The outermost block around the failing statement that evaluates and goes back nowhere."""
    program = context.program
    evaluates = any(one.name == "live_evaluation" for one in context.incident.facts)
    for file, statement in failing_statements(context):
        names = program.names(file)
        function = names.function_of(statement)
        is_forward = function is not None and (function.name == "forward" or function.name.endswith("_step"))
        if is_forward or is_without_grad(statement, file, program) or _goes_back(statement, file, program):
            continue
        why = "evaluates with a graph, which holds the activations of each batch for a backward that never comes"
        if isinstance(function, ast.FunctionDef) and not _goes_back(function, file, program):
            is_eval = _is_switched(function) or (evaluates and _EVALUATES.search(function.name))
            if is_eval and not any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in walk(function)):
                edit = insert_before(file, function, f"@{spell(names, 'torch.no_grad')}()")
                yield Proposal(edits=(edit,), culprit=culprit_of(file, function, why), belief=2.0)
            continue
        loop = _outermost(statement, file, program)
        scope = scope_of(statement, file)
        if loop is not None and (evaluates or _is_switched(scope)) and _switched_before(loop, scope):
            edits = under_no_grad(file, [loop], names)
            if edits:
                yield Proposal(edits=edits, culprit=culprit_of(file, loop, why), belief=1.8)


def _goes_back(node: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether a backward runs in a block, or in a function of the program that it calls."""
    inside = set(walk(node))
    if any(one.file is file and one.call in inside for one in find_backwards(program)):
        return True
    calls = [one for one in inside if isinstance(one, ast.Call)] if depth < _DEPTH else []
    called = [callee for one in calls for callee in callees_of(one.func, file, program)]
    return any(_goes_back(one.function, one.file, program, depth + 1) for one in called if one.function is not node)


def _is_switched(scope: ast.AST) -> bool:
    """Whether a module is put into eval mode somewhere in a scope."""
    return any(True for _ in _switches(scope, "eval"))


def _switches(scope: ast.AST, mode: str) -> Iterator[ast.Call]:
    for node in walk(scope):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == mode
            and not node.args
        ):
            yield node


def _switched_before(loop: ast.stmt, scope: ast.AST) -> bool:
    """Whether the last switch above a loop is the one into eval mode."""
    above = [
        (one.lineno, mode) for mode in ("eval", "train") for one in _switches(scope, mode) if one.lineno < loop.lineno
    ]
    return bool(above) and max(above)[1] == "eval"


def _outermost(statement: ast.stmt, file: SourceFile, program: Program) -> ast.stmt | None:
    """The outermost loop around a statement in which nothing goes back."""
    found: ast.stmt | None = None
    node: ast.AST | None = statement
    while node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
        if isinstance(node, (ast.For, ast.While)):
            if _goes_back(node, file, program):
                break
            found = node
        node = file.parents.get(node)
    return found


def _kept(context: Context) -> Iterator[Proposal]:
    """What a training loop adds to a name of its outside, and asks no gradient of."""
    program = context.program
    seen: set[ast.AST] = set()
    for file, loop, _ in training_loops(program):
        scope = scope_of(loop, file)
        inside = set(walk(loop))
        asked = _asked(file, program)
        for bound in bounds_of(scope):
            is_kept = (
                bound.fills and bound.statement in inside and bound.statement not in seen and bound.name not in asked
            )
            if not is_kept or _is_of_round(bound.name, loop, scope) or not _is_collecting(bound.statement):
                continue
            if not holds_graph(bound.node, file.statement(bound.statement), file, program):
                continue
            seen.add(bound.statement)
            value = file.segment(bound.node)
            yield Proposal(
                edits=(put_method(file, bound.node, ".detach()"),),
                culprit=culprit_of(
                    file, bound.statement, f"keeps `{value}` with its graph, and so the activations of each step"
                ),
                belief=1.5,
                title=f"Keep the value without its graph: `{value}.detach()`",
            )


def _asked(file: SourceFile, program: Program) -> set[str]:
    """The names of a file that a loss is computed of, however early: `torch.stack(losses)` before `total.backward()`."""
    found: set[str] = set()
    for one in find_backwards(program):
        if one.file is file and one.loss is not None:
            found |= reads(one.loss).union(*(reads(line) for line in lineage(one.loss, one.statement, file, program)))
    return found


def _is_collecting(statement: ast.AST) -> bool:
    """`total += x` and `kept.append(x)`: a tuple or dictionary that is put away is no tensor."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Add) and dotted_name(statement.target) is not None
    if not isinstance(statement, ast.Call) or not isinstance(statement.func, ast.Attribute):
        return False
    is_plain = all(isinstance(one, (ast.Name, ast.Attribute, ast.Call, ast.BinOp)) for one in statement.args)
    return statement.func.attr in _KEEPS and is_plain


def _is_of_round(name: str, loop: ast.AST, scope: ast.AST) -> bool:
    """Whether each round of a loop begins the name anew."""
    inside = set(walk(loop))
    return any(one.name == name and not one.fills and one.statement in inside for one in bounds_of(scope))
