"""The deviation of a single value counts as 0: `values.std().nan_to_num()`, where a trace saw it make NaN of data.

Only where no gradient goes through it and the divisor is kept from 0 otherwise: `(x - x.mean()) / (x.std() + eps)`, which is
then 0 for one value and what it was for all others. Where a gradient does, its backward would be NaN still: a single value is
asked for, `x.std(0) if x.size(0) > 1 else torch.zeros_like(x.mean(0))`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import put_method, spell
from explainer.model.patch import Edit
from explainer.model.trace import NOT_FINITE
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.tree import walk

_DEVIATIONS = ("std", "var")
_CHOICE = "what a single value deviates by is a choice: 0 here, and all others as before; `correction=0` changes all"
_COLLECTS = frozenset({"cat", "stack", "concat", "hstack", "vstack", "append"})
# An episode of one step that is worth nothing, its raw return, or no step at all: they train differently.
_RETURNS = re.compile(r"returns?$|rewards?$|advantage", re.IGNORECASE)
_FLOORS = ("clamp", "clamp_min", "clip", "maximum")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the deviation of the traced line, where it is part of a divisor that cannot be 0."""
    is_data = any(one.name == "traced_nan_without_graph" for one in context.incident.facts)
    for line, file, statement in traced_statements(NOT_FINITE, context):
        if line.operation not in _DEVIATIONS:
            continue
        names = context.program.names(file)
        found = [node for node in walk(statement) if isinstance(node, ast.Call) and _is_deviation(node, names)]
        edit: Edit | None = None
        if len(found) == 1 and is_data and _has_floor(found[0], file):
            edit = put_method(file, found[0], ".nan_to_num()")
        elif len(found) == 1 and not is_data and line.node and not _may_divide(found[0], file):
            edit = _asked(found[0], file, names)
        if edit is not None and is_data and _is_of_returns(statement):
            why = "divides by n - 1, which is 0 for a single value: what an episode of one step should teach is yours to say"
            yield Proposal(edits=(), culprit=culprit_of(file, found[0], why), belief=2.0)
        elif edit is not None:
            yield Proposal(
                edits=(edit,),
                culprit=culprit_of(file, found[0], "divides by n - 1, which is 0 for a single value"),
                belief=2.0,
                applicability=None if is_data else "unsafe",
                because=None if is_data else _CHOICE,
            )


def _is_of_returns(statement: ast.stmt) -> bool:
    """Whether a statement names the returns or rewards of an episode."""
    names = (getattr(one, "id", getattr(one, "attr", "")) for one in walk(statement))
    return any(_RETURNS.search(one) for one in names if isinstance(one, str))


def _may_divide(node: ast.Call, file: SourceFile) -> bool:
    """Whether a deviation goes anywhere but into a collection of features: 0 is no better where it divides."""
    above = file.parents.get(node)
    while isinstance(above, (ast.List, ast.Tuple)):
        above = file.parents.get(above)
    is_collected = isinstance(above, ast.Call) and getattr(above.func, "attr", "") in _COLLECTS
    return not is_collected and not isinstance(above, ast.Return)


def _asked(node: ast.Call, file: SourceFile, names: Names) -> Edit | None:
    """The deviation of several values, 0 of one; None where what it is taken over is not written as a name and a dimension."""
    subject, given = _deviated(node, names)
    options = {one.arg: file.segment(one.value) for one in node.keywords}
    dimension = options.pop("dim", None) or (file.segment(given[0]) if len(given) == 1 else None)
    is_known = len(given) <= 1 and set(options) <= {"keepdim", "unbiased", "correction"}
    if subject is None or dotted_name(subject) is None or not is_known or not (dimension or "0").lstrip("-").isdigit():
        return None
    text = file.segment(subject)
    size = f"{text}.numel()" if dimension is None else f"{text}.size({dimension})"
    kept = ["keepdim=" + options["keepdim"]] if "keepdim" in options else []
    mean = f"{text}.mean({', '.join([*([dimension] if dimension else []), *kept])})"
    new = f"{file.segment(node)} if {size} > 1 else {spell(names, 'torch.zeros_like')}({mean})"
    return edit_of(file, node, new)


def _deviated(node: ast.Call, names: Names) -> tuple[ast.expr | None, list[ast.expr]]:
    """What a deviation is taken of, and its other positional arguments."""
    if (names.qualified(node.func) or "").startswith("torch."):
        return (node.args[0] if node.args else None), node.args[1:]
    return (node.func.value if isinstance(node.func, ast.Attribute) else None), node.args


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
