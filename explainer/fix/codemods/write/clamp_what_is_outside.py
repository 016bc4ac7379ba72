"""A weight that each forward clamps in place is written only where it is out of bounds: `if (w < 0).any(): w.clamp_(min=0)`.

A second forward of the step, another branch or another batch, then leaves what the first one saved as it was: what was clamped is
within its bounds. Values and gradients are those that the program is written for. A factor or a norm is no such write: it moves the
weight each time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import forward_places
from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.trace import WRITE
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.network.own_weight import rewritten_in_forward
from explainer.source.tree import walk

# The bounds that a method takes, in their order.
_BOUNDS = {
    "clamp_": ("min", "max"), "clip_": ("min", "max"), "clamp_min_": ("min",), "clamp_max_": ("max",), "relu_": (),
}  # fmt: skip
_SIGNS = {"min": "<", "max": ">"}


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each clamp without grad that a trace saw write what was saved, or that stands on the way of the forward."""
    if not context.has_failed:
        return
    traced = [statement for _, statement in traced_places(WRITE, context)]
    near = [statement for _, statement in (*forward_places(context), *rewritten_in_forward(context.program))]
    for file in context.program.parsed():
        yield from _in_file(file, traced, near, context)


def _in_file(file: SourceFile, traced: list[ast.stmt], near: list[ast.stmt], context: Context) -> Iterator[Proposal]:
    for statement in file.walk():
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(statement, ast.Expr) or not isinstance(call, ast.Call):
            continue
        test = _is_outside(call, file)
        if test is None or not _begins_line(statement, file) or _is_tested(statement, file):
            continue
        if not is_without_grad(call, file, context.program):
            continue  # it is recorded, and a part of what is trained
        body = file.segment(statement).replace(file.newline, f"{file.newline}    ")
        text = f"if {test}:{file.newline}{file.indent(statement.lineno)}    {body}"
        yield Proposal(
            edits=(edit_of(file, statement, text),),
            culprit=culprit_of(
                file, call, "clamps the weight again in each forward, also where it is within its bounds"
            ),
            belief=2.5 if statement in traced else 1.0 if statement in near else 0.0,
        )


def _is_outside(call: ast.Call, file: SourceFile) -> str | None:
    """The expression that tells whether a tensor is out of the bounds that a method writes it into; None for another method."""
    func = call.func
    names = _BOUNDS.get(func.attr) if isinstance(func, ast.Attribute) else None
    if names is None or not isinstance(func, ast.Attribute) or len(call.args) > len(names):
        return None
    given: dict[str | None, ast.expr] = dict(zip(names, call.args, strict=False))
    given |= {one.arg: one.value for one in call.keywords}
    if any(
        not isinstance(one, (ast.Constant, ast.Name, ast.Attribute, ast.UnaryOp))
        for one in (func.value, *given.values())
    ):
        return None
    bounds = [
        (_SIGNS[name], file.segment(value))
        for name, value in given.items()
        if name in _SIGNS and not (isinstance(value, ast.Constant) and value.value is None)
    ]
    bounds = bounds or ([("<", "0")] if func.attr == "relu_" else [])
    tests = [f"({file.segment(func.value)} {sign} {bound})" for sign, bound in bounds]
    if not tests or None in given:
        return None
    return f"{tests[0]}.any()" if len(tests) == 1 else f"({' | '.join(tests)}).any()"


def _begins_line(statement: ast.stmt, file: SourceFile) -> bool:
    start = file.line_start(statement.lineno)
    return not file.text[start : file.span(statement)[0]].strip()


def _is_tested(statement: ast.stmt, file: SourceFile) -> bool:
    """Whether a condition on values stands around the statement already: it is reached where something is outside."""
    above = file.parents.get(statement)
    return isinstance(above, ast.If) and any(
        isinstance(one, ast.Attribute) and one.attr in ("any", "min", "max", "amin", "amax") for one in walk(above.test)
    )
