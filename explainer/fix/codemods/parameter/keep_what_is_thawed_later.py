"""The optimizer gets what is thawed later: `model.parameters()` for `[p for p in model.parameters() if p.requires_grad]`.

A filter takes what requires grad when the optimizer is made. What a later stage switches on then trains for nobody. An optimizer passes
over parameters that have no gradient, so that until then nothing changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk

_PARTS = "live_parts"
_READS = frozenset({"sum", "len", "any", "all", "print", "max", "min", "clip_grad_norm_", "clip_grad_value_"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one filter of a program in which parameters were seen to train for no optimizer."""
    if not any(one.name == _PARTS for one in context.incident.facts):
        return
    if not any(_switches_on(node) for file in context.program.parsed() for node in file.walk()):
        return
    found = [
        (file, node, source)
        for file in context.program.parsed()
        for node in file.walk()
        if isinstance(node, ast.expr) and (source := _filtered(node)) is not None and not _is_read(node, file)
    ]
    if len(found) == 1:
        ((file, node, source),) = found
        yield Proposal(
            edits=(edit_of(file, node, file.segment(source)),),
            culprit=culprit_of(file, node, "takes what requires grad at this moment, and not what is switched on later"),
            belief=2.6,
            because="an optimizer passes over parameters without a gradient: nothing changes until they are switched on",
            title=f"Give the optimizer every parameter, also those that are switched on later: `{file.segment(source)}`",
        )  # fmt: skip


def _switches_on(node: ast.AST) -> bool:
    """Whether a node may switch gradients on: `requires_grad_(name in parts)`, `p.requires_grad = True`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        return not any(isinstance(one, ast.Constant) and one.value is False for one in node.args)
    is_set = isinstance(node, ast.Assign) and any(getattr(one, "attr", "") == "requires_grad" for one in node.targets)
    return is_set and not (isinstance(node.value, ast.Constant) and node.value.value is False)  # type: ignore[attr-defined]


def _filtered(node: ast.expr) -> ast.expr | None:
    """`model.parameters()` of a list of those that require grad."""
    if isinstance(node, ast.Call) and dotted_name(node.func) == "filter" and len(node.args) == 2:
        test, source = node.args
        is_flag = (
            isinstance(test, ast.Lambda) and isinstance(test.body, ast.Attribute) and test.body.attr == "requires_grad"
        )
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp)) and len(node.generators) == 1:
        (turn,) = node.generators
        source = turn.iter
        is_same = ast.unparse(node.elt) == ast.unparse(turn.target)
        is_flag = is_same and [ast.unparse(one) for one in turn.ifs] == [f"{ast.unparse(turn.target)}.requires_grad"]
    else:
        return None
    is_all = (
        isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and source.func.attr == "parameters"
    )
    return source if is_flag and is_all else None


def _is_read(node: ast.expr, file: SourceFile) -> bool:
    """Whether a list is only counted, clipped or printed."""
    above = file.parents.get(node)
    while above is not None and not isinstance(above, ast.stmt):
        if isinstance(above, ast.Call) and (dotted_name(above.func) or "").rpartition(".")[2] in _READS:
            return True
        above = file.parents.get(above)
    return isinstance(above, (ast.For, ast.Assert)) or (isinstance(above, ast.If) and node in set(walk(above.test)))
