"""The odd batch without a label that counts is left out: `if (batch["labels"] == -100).all(): continue` before its forward.

A mask that is drawn, or a last batch of two short rows, may leave none: the library's mean over labels is 0 / 0 then, its gradient
0. Only where few of a run's steps were so; where many are, the data is what is wrong, and leaving it out would hide that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.model.incident import NAN_STEPS, SEEN
from explainer.model.trace import NOT_FINITE
from explainer.source.file import SourceFile
from explainer.source.tree import walk

_SAID = re.compile(re.escape(SEEN) + NAN_STEPS.format(r"(\d+)", r"(\d+)"))
_FEW = 5  # one in so many at most
_IGNORED = "-100"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit before the forward that the trace saw to average over no label."""
    said = next((found for one in context.incident.log if (found := _SAID.match(one.text))), None)
    if said is None or int(said[1]) * _FEW > int(said[2]):
        return
    for file, statement in traced_places(NOT_FINITE, context):
        loop = file.enclosing(statement, ast.For)
        labels = _labels(statement, file)
        if isinstance(loop, ast.For) and labels is not None and not _steps_now_and_then(loop):
            text = f"if ({labels} == {_IGNORED}).all():\n    continue"
            yield Proposal(
                edits=(insert_before(file, statement, text),),
                culprit=culprit_of(
                    file, statement, "averages over the labels that count, of which a batch may have none"
                ),
                belief=1.0,
            )


def _labels(statement: ast.stmt, file: SourceFile) -> str | None:
    """The labels as the statement has them: `batch["labels"]` of `model(**batch)`, `y` of `model(x, labels=y)`."""
    for call in walk(statement):
        for one in call.keywords if isinstance(call, ast.Call) else ():
            if one.arg == "labels":
                return file.segment(one.value)
            if one.arg is None and isinstance(one.value, ast.Name):
                return f'{one.value.id}["labels"]'
    return None


def _steps_now_and_then(loop: ast.For) -> bool:
    """Whether a step gathers several batches: one that is left out may be the one at which it is made."""
    gated = [one for one in walk(loop) if isinstance(one, ast.If) and any(_is_step(each) for each in walk(one))]
    return any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod) for each in gated for one in walk(each.test))


def _is_step(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step"
