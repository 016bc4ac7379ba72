"""What a stepped network made before its step is made again behind it: `critic(z)` becomes `critic(enc(x))`.

For a loss that is computed behind the step of one optimizer, goes back through what its network made before, and is stepped by
another optimizer of the same network: to move the step behind that backward would give either optimizer gradients of the other's
loss. With `options["climb"]` for the second backward of sharpness-aware minimisation, which asks for the gradient at the place
to which `first_step` has climbed: it needs a forward there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import fails_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward
from explainer.source.loop.common_step import climbs, shared_steps
from explainer.source.loop.update import find_turns
from explainer.source.name import dotted_name
from explainer.source.network.module import is_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import before, binds, block_of, definitions, lineage, scope_of
from explainer.source.value.once import is_random
from explainer.source.value.resolve import resolver_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each backward that raised, where one statement behind the step reads what a statement before it made."""
    if not context.has_failed:
        return
    for backward in find_turns(context.program):
        if not fails_at(backward, context):
            continue
        if context.options.get("climb"):
            yield from _climbed(backward, context.program)
            continue
        for step, networks in shared_steps(backward, context.program):
            yield from _again(backward, step, networks, context.program)


def _climbed(backward: Backward, program: Program) -> Iterator[Proposal]:
    """The second backward's loss of a forward of its own, where the first forward stands before the climb."""
    file = backward.file
    block = block_of(backward.statement, file)
    climb = next((one for one in block if climbs(one) and before(one, backward.statement)), None)
    scope = scope_of(backward.call, file, program)
    if climb is None or scope is None:
        return
    for read in (one for one in walk(backward.loss) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)):
        text = _made_anew(read, climb, backward.statement, file, program)
        if text is not None:
            yield Proposal(
                edits=(edit_of(file, read, text),),
                culprit=culprit_of(file, backward.statement, "goes back through the forward from before the climb"),
                belief=3.0,
            )
            return


def _made_anew(read: ast.Name, climb: ast.stmt, line: ast.stmt, file: SourceFile, program: Program) -> str | None:
    """What a name stands for, with the run of a network that made it before the climb; None where no network did."""
    scope = scope_of(line, file, program)
    made = definitions(read.id, line, scope) if scope is not None else []
    value = made[0].value if len(made) == 1 and isinstance(made[0], ast.Assign) else None
    if value is None or not before(made[0], climb) or not _is_steady(value, made[0], line, file, program):
        return None
    start, text = file.span(value)[0], file.segment(value)
    is_run = any(isinstance(one, ast.Call) and _runs_module(one, file, program) for one in walk(value))
    names = [one for one in walk(value) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    for one in sorted(names, key=lambda one: -file.span(one)[0]):
        inner = _made_anew(one, climb, made[0], file, program)
        if inner is not None:
            first, last = (at - start for at in file.span(one))
            text, is_run = text[:first] + inner + text[last:], True
    return _as_operand(text, value, file.parents.get(read)) if is_run else None


def _as_operand(text: str, value: ast.expr, above: ast.AST | None) -> str:
    """A value's text as it stands in the place of its name: in parentheses where that would bind its parts otherwise."""
    is_open = isinstance(value, (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.BoolOp, ast.Compare, ast.Lambda, ast.Await))
    is_part = isinstance(above, (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript, ast.Compare))
    is_product = isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div))
    is_sum = isinstance(above, ast.BinOp) and isinstance(above.op, (ast.Add, ast.Sub))
    return f"({text})" if is_open and is_part and not (is_product and is_sum) else text


def _runs_module(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether a call runs a module, or a method that the program has written for one: `model.overlap()`."""
    if is_module(Value(call.func, file), program):
        return True
    is_own = resolver_of(program).function_of(call, Value(call, file)) is not None
    return is_own and isinstance(call.func, ast.Attribute) and is_module(Value(call.func.value, file), program)


def _again(backward: Backward, step: ast.stmt, networks: frozenset[str], program: Program) -> Iterator[Proposal]:
    file = backward.file
    scope = scope_of(backward.call, file, program)
    lines = [one for one in lineage(backward.loss, backward.statement, file, program) if before(step, one)]
    for line in lines if scope is not None else ():
        for name in sorted(
            {one.id for one in walk(line) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
        ):
            made = definitions(name, line, scope) if scope is not None else []
            value = made[0].value if len(made) == 1 and isinstance(made[0], ast.Assign) else None
            if value is None or not before(made[0], step) or not _runs(value, networks, file, program):
                continue
            reads = [one for one in walk(line) if isinstance(one, ast.Name) and one.id == name]
            if len(reads) == 1 and _is_steady(value, made[0], line, file, program):
                yield Proposal(
                    edits=(edit_of(file, reads[0], file.segment(value)),),
                    culprit=culprit_of(file, step, f"changes the weights of `{min(networks)}` before this loss's backward reads them"),
                    belief=2.4,
                )  # fmt: skip


def _runs(value: ast.expr, networks: frozenset[str], file: SourceFile, program: Program) -> bool:
    """Whether an expression is the run of one of the networks, the same whenever it is run on the same weights."""
    return isinstance(value, ast.Call) and dotted_name(value.func) in networks and not is_random(value, file, program)


def _is_steady(value: ast.expr, made: ast.stmt, line: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether nothing between two statements binds anew what an expression reads."""
    scope = scope_of(made, file, program)
    names = {one.id for one in walk(value) if isinstance(one, ast.Name)}
    block = block_of(line, file)
    between = [one for one in block if before(made, one) and before(one, line)]
    return scope is not None and not any(set(binds(one)) & names for one in between)
