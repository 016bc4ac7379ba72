"""What is thawed of a float16 base is made float32 there: `top.float().requires_grad_(True)`.

A frozen base may stay in half precision. Weights that an optimizer moves under a GradScaler have gradients of their own dtype, and the
scaler takes those of float32 only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.model.patch import Edit
from explainer.source.network.freeze import Freeze, find_freezes, owner_of
from explainer.source.network.module import is_module
from explainer.source.program import Program
from explainer.source.value.binding import Value


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one place of the program that switches gradients on."""
    if not context.has_failed:
        return
    on = [one for one in find_freezes(context.program) if one.is_on]
    edit = _made_float(on[0], context.program) if len(on) == 1 else None
    if edit is not None:
        (freeze,) = on
        yield Proposal(
            edits=(edit,),
            culprit=culprit_of(freeze.file, freeze.flag, "lets weights train that are float16, as they were loaded"),
            belief=1.8,
            because="the frozen part stays float16; autocast still computes in it what is thawed",
            title=f"Make what is thawed float32: `{freeze.file.segment(freeze.owner)}.float()`",
        )


def _made_float(freeze: Freeze, program: Program) -> Edit | None:
    """`.float()` on the module that a call thaws, before the loop over its parameters, or on each that a test takes.

    Of one parameter it would be a copy, which no optimizer has.
    """
    file, owner = freeze.file, freeze.owner
    if isinstance(freeze.statement, ast.For):
        name = _parameter(freeze.statement)
        if freeze.test is None:
            return insert_before(file, freeze.statement, f"{file.segment(owner)}.float()")
        statement = file.statement(freeze.flag)
        return insert_before(file, statement, f"{name}.data = {name}.data.float()") if name is not None else None
    loop = file.enclosing(freeze.flag, ast.For)
    if isinstance(loop, ast.For) and owner_of(loop.iter) is not None:
        return None
    end = file.span(owner)[1]
    return Edit(file=file.path, start=end, end=end, new=".float()") if is_module(Value(owner, file), program) else None


def _parameter(loop: ast.For) -> str | None:
    """What a loop over parameters calls each of them."""
    target = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) and loop.target.elts else loop.target
    return target.id if isinstance(target, ast.Name) else None
