"""A branch of a loss that leaves out the reduction of the other branches: `if len(losses) <= self.kept: return losses`.

It fails for the batches that take it alone: the last one of an epoch, one without a positive.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Proposal, culprit_of, edit_of
from explainer.fix.loss.reduction_of_base import wrapper_of
from explainer.fix.text.rewrite import operand
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, walk_scope
from explainer.source.value.callee import functions_called


def reduced_by_others(loss: ast.expr, file: SourceFile, program: Program) -> Iterator[Proposal]:
    """An edit for the one `return`, of the function or module that makes a loss, that gives back one value for each element.

    Nothing where the other ones reduce in different ways, or none does.
    """
    found = maker_of(loss, file, program)
    ends = _ends(found[1]) if found is not None else []
    wrappers = [wrapper_of(one) for one in ends]
    told = {one for one in wrappers if one is not None}
    if found is None or len(told) != 1 or wrappers.count(None) != 1 or _is_asked_for(found[1]):
        return
    where, function = found
    (wrapper,) = told
    left = ends[wrappers.index(None)]
    text = where.segment(left) if wrapper.endswith("({})") else operand(where, left)
    yield Proposal(
        edits=(edit_of(where, left, wrapper.format(text)),),
        culprit=culprit_of(where, left, "gives back one value for each element, where the other branches reduce them"),
        belief=2.2,
        title=f"Reduce the loss as the other branches do: `{wrapper.format(text)}`",
        because=f"so does every other `return` of `{function.name}`",
    )


def is_reduced_throughout(loss: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether the function or module of the program that makes a loss reduces it in each of several branches."""
    found = maker_of(loss, file, program)
    ends = _ends(found[1]) if found is not None else []
    return len(ends) > 1 and all(wrapper_of(one) is not None for one in ends)


def _ends(function: Function) -> list[ast.expr]:
    return [one.value for one in walk_scope(function) if isinstance(one, ast.Return) and one.value is not None]


def _is_asked_for(function: Function) -> bool:
    """Whether an option says what is given back: `if self.reduction == "mean"`; then it is the option that is wrong."""
    tests = [one.test for one in walk_scope(function) if isinstance(one, (ast.If, ast.IfExp))]
    return any(
        (isinstance(node, ast.Constant) and isinstance(node.value, str))
        or "reduc" in str(getattr(node, "attr", None) or getattr(node, "id", ""))
        for test in tests
        for node in walk(test)
    )


def maker_of(loss: ast.expr, file: SourceFile, program: Program) -> tuple[SourceFile, Function] | None:
    """The function of the program that makes a loss, or the `forward` of the module that does."""
    found = functions_called(loss, Value(loss, file), program) if isinstance(loss, ast.Call) else []
    return found[0] if found else None
