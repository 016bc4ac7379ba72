"""A sample that the loss trains on is drawn with its gradient: `q.rsample()` for `q.sample()`, where the trace saw it.

Only the live program can say that the distribution has such a form, and that nothing asks for the sample's probability.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.patch import Edit
from explainer.model.trace import DRAWN
from explainer.source.file import SourceFile
from explainer.source.tree import walk


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each traced line with one draw on it."""
    for file, statement in traced_places(DRAWN, context):
        calls = [node for node in walk(statement) if _is_draw(node)]
        if len(calls) == 1:
            yield Proposal(
                edits=(_renamed(calls[0], file),),
                culprit=culprit_of(
                    file, calls[0], "draws without the gradient that the loss would send through the sample"
                ),
                belief=2.0,
            )


def _is_draw(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sample"


def _renamed(call: ast.AST, file: SourceFile) -> Edit:
    assert isinstance(call, ast.Call)
    end = file.span(call.func)[1]
    return Edit(file=file.path, start=end - len("sample"), end=end, new="rsample")
