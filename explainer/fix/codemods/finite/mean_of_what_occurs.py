"""The mean over groups leaves out those that are empty, as the program does elsewhere: `(total[seen] / count[seen]).mean()`.

A class without a row, an assay without a measurement: 0 / 0. With a floor under the count it would weigh in as a loss of 0. Which of
the two means is meant the program has to say itself: an evaluation that leaves out what does not occur, or the words beside it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.fix.text.rewrite import free_name, operand
from explainer.model.trace import NOT_FINITE
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import scope_of
from explainer.source.value.resolve import resolver_of

_SAYS = re.compile(r"\b(?:occurs?|present|appears?|measured|observed|labell?ed|non-?empty)\b", re.IGNORECASE)
_NAME = "seen"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the quotient by counts that a trace saw make the first NaN, where nothing but its mean is taken."""
    for _, file, statement in list(traced_statements(NOT_FINITE, context))[:1]:
        for node in walk(statement):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
                continue
            function = context.program.names(file).function_of(node)
            callers = _averaged(node, function, file, context.program) if function is not None else None
            if function is None or callers is None or not _is_said([function, *callers], context.program):
                continue
            name = free_name(_NAME, scope_of(node, file))
            count = operand(file, node.right)
            yield Proposal(
                edits=(
                    insert_before(file, statement, f"{name} = {count} > 0"),
                    edit_of(file, node.left, f"{operand(file, node.left)}[{name}]"),
                    edit_of(file, node.right, f"{count}[{name}]"),
                ),
                culprit=culprit_of(file, node, "divides by the counts of groups, of which some are empty"),
                belief=2.4,
            )


def _averaged(node: ast.BinOp, function: Function, file: SourceFile, program: Program) -> list[Function] | None:
    """The callers of a function that returns a quotient of which they take the mean; [] where it takes that itself."""
    if _is_mean(node, file):
        return []
    if not isinstance(file.parents.get(node), ast.Return):
        return None
    calls = resolver_of(program).calls_of(function, file)
    if not calls or not all(_is_mean(call, where) for where, call in calls):
        return None
    return [one for where, call in calls if (one := program.names(where).function_of(call)) is not None]


def _is_mean(node: ast.expr, file: SourceFile) -> bool:
    """Whether `.mean()` of all of an expression is taken, or `torch.mean` of it."""
    above = file.parents.get(node)
    if isinstance(above, ast.Attribute) and above.attr == "mean":
        call = file.parents.get(above)
        return isinstance(call, ast.Call) and not call.args and not call.keywords
    return isinstance(above, ast.Call) and getattr(above.func, "attr", "") == "mean" and above.args == [node]


def _is_said(functions: list[Function], program: Program) -> bool:
    """Whether the words of these functions speak of what occurs, or another function of the program takes such a mean."""
    if any(_SAYS.search(ast.get_docstring(one) or "") for one in functions):
        return True
    return any(one not in functions and _leaves_out(one) for _, one in program.functions())


def _leaves_out(function: Function) -> bool:
    """Whether a function takes a mean, and before that only what there is: `total[count > 0]`, `if shown.any(): rows.append(...)`."""
    nodes = list(walk(function))
    takes = any(isinstance(one, ast.Attribute) and one.attr == "mean" for one in nodes)
    compared = {
        target.id
        for one in nodes
        if isinstance(one, ast.Assign) and _is_positive(one.value)
        for target in one.targets
        if isinstance(target, ast.Name)
    }
    indexed = any(
        isinstance(one, ast.Subscript)
        and (_is_positive(one.slice) or (isinstance(one.slice, ast.Name) and one.slice.id in compared))
        for one in nodes
    )
    asked = any(
        isinstance(one, ast.If)
        and any(isinstance(each, ast.Attribute) and each.attr == "any" for each in walk(one.test))
        and any(isinstance(each, ast.Attribute) and each.attr == "append" for each in walk(one))
        for one in nodes
    )
    return takes and (indexed or asked)


def _is_positive(node: ast.expr) -> bool:
    is_compared = isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Gt, ast.NotEq))
    return is_compared and getattr(node.comparators[0], "value", None) == 0  # type: ignore[attr-defined]
