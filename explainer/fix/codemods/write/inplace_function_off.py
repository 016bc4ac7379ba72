"""In-place activations without a keyword: `nn.ReLU(True)` becomes `nn.ReLU(False)`, `F.relu_(x)` becomes `F.relu(x)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import forward_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.write.result import take_results
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.operation import (
    INPLACE_OF_FUNCTION,
    INPLACE_OF_MODULE,
    is_named,
    operation_of,
    saves_output,
)
from explainer.source.graph.private import is_private
from explainer.source.graph.write import is_without_grad
from explainer.source.program import Program
from explainer.source.value.definition import operations_before

_NOT_VALUES = ("torch.nn.init.", "torch.nn.utils.", "torch._")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each in-place activation of the program."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        for node in file.walk():
            if not isinstance(node, ast.Call) or is_without_grad(node, file, context.program):
                continue
            edit = _positional(node, file, context.program)
            results = take_results(node, file, context.program) if edit is not None else ()
            edit = edit or _underscored(node, file, context.program)
            if edit is not None and results is not None:
                why = "writes its input in place, also where another backward needs it"
                yield Proposal(
                    edits=(*results, edit), culprit=culprit_of(file, node, why), belief=_belief(node, file, context)
                )


def _positional(node: ast.Call, file: SourceFile, program: Program) -> Edit | None:
    owner, _, last = (program.names(file).qualified(node.func) or "").rpartition(".")
    table = INPLACE_OF_MODULE if owner == "torch.nn" else INPLACE_OF_FUNCTION if owner == "torch.nn.functional" else {}
    place = table.get(last)
    if place is None or len(node.args) <= place:
        return None
    value = node.args[place]
    return edit_of(file, value, "False") if isinstance(value, ast.Constant) and value.value is True else None


def _underscored(node: ast.Call, file: SourceFile, program: Program) -> Edit | None:
    """`F.relu_(x)`, `torch.sigmoid_(x)`, whose result is used: without the underscore; as a statement it is assigned."""
    called = program.names(file).qualified(node.func) or ""
    owner, _, last = called.rpartition(".")
    if (
        owner not in ("torch", "torch.nn.functional")
        or called.startswith(_NOT_VALUES)
        or not last.endswith("_")
        or not node.args
    ):
        return None
    if isinstance(node.func, ast.Name):
        return None  # the function without the underscore is not imported
    start, end = file.span(node.func)
    name = file.segment(node.func)[:-1]
    if isinstance(file.parents.get(node), ast.Expr):
        target = node.args[0]
        if not isinstance(target, ast.Name):
            return None
        return Edit(file=file.path, start=start, end=end, new=f"{target.id} = {name}")
    return Edit(file=file.path, start=start, end=end, new=name)


def _belief(node: ast.Call, file: SourceFile, context: Context) -> float:
    """More where the input is an operation that keeps its result, above all the one that the message names."""
    said = str(context.fields.get("node") or context.fields.get("op") or "")
    said = re.sub(r"(?:Backward)?\d*$", "", said)
    belief = 0.4 + sum(1.5 for where, one in forward_places(context) if where is file and one is file.statement(node))
    if is_private(node, file, context.program):
        return belief - 1.5  # a layer that does not need its own result is all that had it
    value = node.args[0] if node.args else None
    if isinstance(value, ast.Name):
        made = operations_before(value.id, node, file, context.program)
    else:
        made = (operation_of(value, file, context.program),)
    if said and any(one is not None and is_named(one, said) for one in made):
        return belief + 1.5
    if any(one is not None and saves_output(one) for one in made):
        return belief + 0.5
    return belief if None in made else belief - 0.5
