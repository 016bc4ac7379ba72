"""The deviation of a single value counts as 0: `values.std().nan_to_num()`, where a trace saw it make NaN of data.

Only where no gradient goes through it (there its backward would be NaN still) and the divisor is kept from 0 otherwise:
`(x - x.mean()) / (x.std() + eps)`, which is then 0 for one value and what it was for all others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.rewrite import put_method
from explainer.fix.trace import traced_statements
from explainer.model.trace import NOT_FINITE
from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.tree import walk

_DEVIATIONS = ("std", "var")
_FLOORS = ("clamp", "clamp_min", "clip", "maximum")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the deviation of the traced line, where it is part of a divisor that cannot be 0."""
    if not any(one.name == "traced_nan_without_graph" for one in context.incident.facts):
        return
    for line, file, statement in traced_statements(NOT_FINITE, context):
        if line.operation not in _DEVIATIONS:
            continue
        names = context.program.names(file)
        found = [node for node in walk(statement) if isinstance(node, ast.Call) and _is_deviation(node, names)]
        if len(found) == 1 and _has_floor(found[0], file):
            why = "divides by n - 1, which is 0 for a single value"
            edit = put_method(file, found[0], ".nan_to_num()")
            yield Proposal(edits=(edit,), culprit=culprit_of(file, found[0], why), belief=2.0)


def _is_deviation(node: ast.Call, names: Names) -> bool:
    called = names.qualified(node.func) or ""
    if called.startswith("torch."):
        return called.removeprefix("torch.") in _DEVIATIONS
    return isinstance(node.func, ast.Attribute) and node.func.attr in _DEVIATIONS


def _has_floor(node: ast.Call, file: SourceFile) -> bool:
    """Whether something small is added to a deviation, or it is clamped."""
    above = file.parents.get(node)
    if isinstance(above, ast.BinOp):
        return isinstance(above.op, ast.Add)
    if isinstance(above, ast.Attribute):
        return above.attr in _FLOORS
    return isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and above.func.attr in _FLOORS
