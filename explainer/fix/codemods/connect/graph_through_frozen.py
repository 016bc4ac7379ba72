"""A frozen part keeps its graph where something below it trains: without `part.forward = torch.no_grad()(part.forward)`.

Its own parameters require no grad and get none; what comes in and requires it, as a prompt does, is cut off by the wrapper.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, remove_statement
from explainer.source.file import SourceFile
from explainer.source.graph.cut import grad_state
from explainer.source.name import dotted_name
from explainer.source.program import Program


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one statement of a program that wraps the forward of a module."""
    if not context.has_failed:
        return
    found = [
        (file, node)
        for file in context.program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Assign) and _wraps_forward(node, file, context.program)
    ]
    if len(found) == 1:
        ((file, statement),) = found
        yield Proposal(
            edits=(remove_statement(file, statement),),
            culprit=culprit_of(file, statement, "runs a frozen part without a graph, also for what trains below it"),
            belief=2.0,
        )


def _wraps_forward(statement: ast.Assign, file: SourceFile, program: Program) -> bool:
    """Whether a module's own forward is bound to itself under `no_grad`."""
    target, value = statement.targets[0], statement.value
    if len(statement.targets) != 1 or not isinstance(target, ast.Attribute) or target.attr != "forward":
        return False
    makes = value.func if isinstance(value, ast.Call) and len(value.args) == 1 else None
    is_off = isinstance(makes, ast.Call) and grad_state(makes, program.names(file)) is False
    return is_off and isinstance(value, ast.Call) and dotted_name(value.args[0]) == dotted_name(target)
