"""Log-probabilities of labels of which some are left out: `logp.gather(-1, labels.clamp(min=0).unsqueeze(-1))`, and 0 for those.

-100 marks what a loss leaves out; a `gather` takes it for a row. Only where what is picked is added up, or averaged: then by the number
of the labels that count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.number import number_of

_REFUSED = re.compile(r"index -100 is out of bounds for dimension \d+ with size \d+")
_MARK = -100


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one `gather` of the line that raised."""
    if not _REFUSED.search(message_of(context)):
        return
    for file, statement in list(raised_at(context))[:1]:
        program = context.program
        calls = [one for one in walk(statement) if isinstance(one, ast.Call) and _index(one, program, file) is not None]
        if len(calls) != 1:
            return
        labels = _labels(_index(calls[0], program, file))
        picked = _without_its_axis(calls[0], file)
        if labels is None or picked is None:
            return
        kept = f"{file.segment(labels)} != {_spelled(file, program)}"
        edits = _uses(picked, statement, kept, file)
        if edits is None:
            return
        zero = put_method(file, picked, f".masked_fill({kept.replace('!=', '==')}, 0.0)")
        yield Proposal(
            edits=(put_method(file, labels, ".clamp(min=0)"), zero, *edits),
            culprit=culprit_of(file, calls[0], f"picks by labels of which {_MARK} marks those that are left out"),
            belief=2.6,
        )


def _index(call: ast.Call, program: Program, file: SourceFile) -> ast.expr | None:
    """The index of a `gather`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "gather":
        return None
    place = 2 if program.names(file).is_call(call, "torch.gather") else 1
    given = [*call.args[place : place + 1], *(one.value for one in call.keywords if one.arg == "index")]
    return given[0] if given else None


def _labels(index: ast.expr | None) -> ast.expr | None:
    """The labels to which an index gives the axis that it picks along: of `labels.unsqueeze(-1)` and `labels[..., None]`."""
    if isinstance(index, ast.Call) and isinstance(index.func, ast.Attribute) and index.func.attr == "unsqueeze":
        index = index.func.value
    elif isinstance(index, ast.Subscript) and ast.unparse(index.slice).endswith(", None)"):
        index = index.value
    else:
        return None
    return index if dotted_name(index) is not None else None


def _without_its_axis(call: ast.Call, file: SourceFile) -> ast.expr | None:
    """What is picked once its last axis is gone: `gather(...).squeeze(-1)`, `gather(...)[..., 0]`."""
    above = file.parents.get(call)
    if isinstance(above, ast.Attribute) and above.attr == "squeeze" and isinstance(file.parents.get(above), ast.Call):
        return file.parents.get(above)  # type: ignore[return-value]
    is_cut = isinstance(above, ast.Subscript) and ast.unparse(above.slice) in ("(..., 0)", "(:, :, 0)", "(:, 0)")
    return above if is_cut else None  # type: ignore[return-value]


def _spelled(file: SourceFile, program: Program) -> str:
    """The marker as the file calls it: by a constant of the module, else the number."""
    for one in getattr(file.tree, "body", ()):
        target = one.targets[0] if isinstance(one, ast.Assign) else None
        if isinstance(target, ast.Name) and number_of(one.value, program.names(file)) == _MARK:
            return target.id
        pairs = zip(target.elts, getattr(one.value, "elts", ()), strict=False) if isinstance(target, ast.Tuple) else ()
        for name, value in pairs:
            if isinstance(name, ast.Name) and number_of(value, program.names(file)) == _MARK:
                return name.id
    return str(_MARK)


def _uses(picked: ast.expr, statement: ast.stmt, kept: str, file: SourceFile) -> list[Edit] | None:
    """The edits of the means that are taken of what is picked; None where it is used for more than sums and means."""
    reads: list[ast.expr] = [picked]
    if isinstance(statement, ast.Assign) and statement.value is picked:
        name = dotted_name(statement.targets[0])
        scope = file.enclosing(statement, ast.FunctionDef, ast.AsyncFunctionDef) or file.tree
        reads = [
            one
            for one in walk(scope)  # type: ignore[arg-type]
            if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
        ]
    edits: list[Edit] = []
    for one in reads:
        above = file.parents.get(one)
        while isinstance(above, ast.UnaryOp):
            one, above = above, file.parents.get(above)
        call = file.parents.get(above) if isinstance(above, ast.Attribute) else None
        if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mult):
            continue  # weighed, by what is 0 for them as well
        if not isinstance(above, ast.Attribute) or not isinstance(call, ast.Call) or above.attr not in ("sum", "mean"):
            return None
        if above.attr == "mean":
            axes = file.text[file.span(above)[1] : file.span(call)[1]]
            summed = f"{file.segment(above.value)}.sum{axes} / ({kept}).sum{axes}"
            edits.append(
                edit_of(file, call, f"({summed})" if isinstance(file.parents.get(call), ast.BinOp) else summed)
            )
    return edits if reads and not (edits and reads == [picked]) else None
