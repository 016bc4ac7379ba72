"""`h.mean(1)` for `h.mean(0)`, `out[:, -1]` for `out[-1]`: with the batch first it is the steps that a sample is summed up over.

Only where the loss got as many rows as there are steps, and the program shows that what is reduced has the batch first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import ROWS, message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.network.recurrent import RECURRENT
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.layout import batch_axis
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_REDUCES = frozenset({"mean", "sum", "amax", "max", "logsumexp"})
_STACK = "torch.nn.TransformerEncoder"
_DEPTH = 6


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one place where a sequence loses its first axis."""
    refused = ROWS.search(message_of(context))
    if refused is None or refused[1] == refused[2]:
        return
    program = context.program
    found = [
        (file, node, edit)
        for file, function in program.functions()
        if function.name == "forward"
        for node in walk(function)
        if isinstance(node, ast.expr)
        and (of := _of(node, file, program)) is not None
        and _is_sequence(Value(of, file), program, 0)
        and (edit := _edit(node, file)) is not None
    ]
    if len(found) == 1:
        file, node, edit = found[0]
        yield Proposal(
            edits=(edit,),
            culprit=culprit_of(file, node, "takes the first axis away, which is the batch"),
            belief=2.4,
        )


def _of(node: ast.expr, file: SourceFile, program: Program) -> ast.expr | None:
    """What loses its first axis: `h` of `h.mean(0)`, `h.mean(dim=0)`, `h[-1]`."""
    names = program.names(file)
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return node.value if number_of(node.slice, names) == -1 else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _REDUCES:
        return None
    axis = next((one.value for one in node.keywords if one.arg in ("dim", "axis")), None)
    axis = axis if axis is not None else node.args[0] if len(node.args) == 1 else None
    return node.func.value if axis is not None and number_of(axis, names) == 0 else None


def _edit(node: ast.expr, file: SourceFile) -> Edit | None:
    if isinstance(node, ast.Subscript):
        return edit_of(file, node.slice, f":, {file.segment(node.slice)}")
    assert isinstance(node, ast.Call)
    axis = next((one.value for one in node.keywords if one.arg in ("dim", "axis")), None) or node.args[0]
    return edit_of(file, axis, "1")


def _is_sequence(value: Value, program: Program, depth: int) -> bool:
    """Whether a value is what a layer gave that reads sequences with the batch first: of a recurrent one the first result."""
    if depth > _DEPTH:
        return False
    if isinstance(value.node, ast.Call):
        made = resolver_of(program).constructors_of(Value(value.node.func, value.file))
        for one in made:
            names = program.names(one.file)
            if isinstance(one.node, ast.Call) and names.is_call(one.node, *RECURRENT):
                is_first = any(
                    word.arg == "batch_first" and getattr(word.value, "value", None) is True
                    for word in one.node.keywords
                )
                return is_first and value.pick == 0
            if isinstance(one.node, ast.Call) and names.is_call(one.node, _STACK):
                return batch_axis(value, program) == 0
        return False
    if isinstance(value.node, ast.Subscript) and number_of(value.node.slice, program.names(value.file)) == 0:
        return _is_sequence(Value(value.node.value, value.file, pick=0), program, depth + 1)
    if not isinstance(value.node, ast.Name):
        return False
    behind = list(resolver_of(program).behind(value))
    return len(behind) == 1 and _is_sequence(behind[0], program, depth + 1)
