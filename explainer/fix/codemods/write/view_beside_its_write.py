"""A view taken under `no_grad` and written outside: both go to the same side of the block.

Outside, where the write is part of the forward; inside, where it only sets the values of a parameter. A function that gives such
a view loses the decorator that switches grad mode off.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.callee import callees_of
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.lineage import binds, changes, scope_of, statements_of, value_of

_MODES = ("torch.no_grad", "torch.inference_mode")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the write that raised and the block that its view comes from."""
    if not context.has_failed:
        return
    for file, statement in crash_places(context):
        scope = scope_of(statement, file, context.program)
        for name in changes(statement):
            yield from _undecorated(name, statement, file, context.program)
            for block in statements_of(scope) if scope is not None else ():
                made = [one for one in getattr(block, "body", ()) if name in binds(one)]
                if isinstance(block, ast.With) and _mode(block, file, context.program) is not None and made:
                    yield from _proposals(block, made[0], statement, file, context.program)
        return


def _undecorated(name: str, write: ast.stmt, file: SourceFile, program: Program) -> Iterator[Proposal]:
    """The function behind `window = self.window(...)` without `@torch.no_grad()`, where what is written into the view has a graph."""
    scope, value = scope_of(write, file, program), value_of(write)
    made = next((one for one in statements_of(scope) if name in binds(one)), None) if scope is not None else None
    call = made.value if isinstance(made, ast.Assign) else None
    if not isinstance(call, ast.Call) or value is None or flow_of(program).reach_of(value, file) == Reach.NONE:
        return
    for callee in callees_of(call.func, file, program):
        for one in getattr(callee.function, "decorator_list", ()):
            func = one.func if isinstance(one, ast.Call) else one
            if program.names(callee.file).qualified(func) in _MODES:
                start, end = (
                    callee.file.line_start(one.lineno),
                    callee.file.line_start((one.end_lineno or one.lineno) + 1),
                )
                why = f"takes a view with grad mode off, and line {write.lineno} of {os.path.basename(file.path)} writes it"
                yield Proposal(
                    edits=(Edit(file=callee.file.path, start=start, end=end, new=""),),
                    culprit=culprit_of(callee.file, one, why),
                    belief=2.0,
                )


def _mode(block: ast.With, file: SourceFile, program: Program) -> ast.expr | None:
    for item in block.items:
        func = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
        if func is not None and program.names(file).qualified(func) in _MODES:
            return func
    return None


def _proposals(
    block: ast.With, made: ast.stmt, write: ast.stmt, file: SourceFile, program: Program
) -> Iterator[Proposal]:
    name = min(binds(made))
    culprit = culprit_of(
        file, made, f"takes the view `{name}` in a block without grad, and line {write.lineno} writes it outside"
    )
    value = value_of(write)
    is_parameter = any(
        isinstance(node, ast.Attribute) and node.attr in ("weight", "bias", "data") for node in walk(made)
    )
    is_part = value is not None and flow_of(program).reach_of(value, file) != Reach.NONE
    if len(block.body) == 1 and not is_parameter:
        inner = "\n".join(_dedented(file, block))
        yield Proposal(edits=(edit_of(file, block, inner),), culprit=culprit, belief=2.0 if is_part else 1.0)
    if not is_part:
        edits = _inside(block, write, file, program)
        if edits:
            yield Proposal(edits=edits, culprit=culprit, belief=2.0 if is_parameter else 0.8)


def _dedented(file: SourceFile, block: ast.With) -> Iterator[str]:
    outer, start = file.indent(block.lineno), file.indent(block.body[0].lineno)
    for number in range(block.body[0].lineno, (block.end_lineno or block.lineno) + 1):
        line = file.line(number).rstrip("\r\n")
        text = outer + line.removeprefix(start)
        yield text.removeprefix(outer) if number == block.body[0].lineno else text


def _inside(block: ast.With, write: ast.stmt, file: SourceFile, program: Program) -> tuple[Edit, ...]:
    """The write as the block's last line, where it follows the block at once; inference mode becomes `no_grad`."""
    if write.lineno != (block.end_lineno or 0) + 1:
        return ()
    indent = file.indent(block.body[0].lineno)
    outer = file.indent(write.lineno)
    start, end = file.line_start(write.lineno), file.span(write)[1]
    text = "\n".join(f"{indent}{line.removeprefix(outer)}" for line in file.text[start:end].split("\n"))
    edits = [Edit(file=file.path, start=start, end=end, new=text)]
    mode = _mode(block, file, program)
    if isinstance(mode, ast.Attribute) and mode.attr == "inference_mode":
        last = file.span(mode)[1]
        edits.append(Edit(file=file.path, start=last - len(mode.attr), end=last, new="no_grad"))
    return tuple(edits)
