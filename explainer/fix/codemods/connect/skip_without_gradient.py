"""A loop over parameters that reads or writes each gradient passes over those that have none: `if param.grad is not None:`.

Only where the live model had gradients of other parameters: a head that this loss does not use has none. Where none had one, the
loop stands in the wrong place, before the backward or behind what clears them. A part that the program runs under no condition was
to be in the loss: what became of its output is to be found.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import in_block
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.network.freeze import owner_of
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import block_of

_FACT = "live_without_gradient"
_NAMES = re.compile(r"[\w.]+\.\w+")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loop that read a gradient which is None."""
    lacking = context.incident.fact(_FACT)
    for file, statement in failing_statements(context)[:1] if lacking is not None else ():
        edits = _in_comprehension(statement, file) or _in_loop(statement, file)
        if edits and lacking is not None and not _is_run(lacking.value, context.program):
            yield Proposal(
                edits=edits,
                culprit=culprit_of(file, statement, f"reads the gradient of each parameter: {lacking.value} has none"),
                belief=2.0,
            )


def _is_run(lacking: str, program: Program) -> bool:
    """Whether a part without gradients is called under no condition: `self.value(h)` of `Net: value.weight, value.bias`."""
    parts = {one.partition(".")[0] for one in _NAMES.findall(lacking.partition(":")[2])}
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in parts
        and not isinstance(file.enclosing(node, ast.If, ast.IfExp, ast.FunctionDef, ast.Lambda), (ast.If, ast.IfExp))
        for file in program.parsed()
        for node in file.walk()
    )


def _in_loop(statement: ast.stmt, file: SourceFile) -> tuple[Edit, ...]:
    """The statement, and those behind it up to the last that reads the gradient, under a condition."""
    loop = file.enclosing(statement, ast.For)
    name = _parameter(loop.iter, loop.target) if isinstance(loop, ast.For) else None
    block = list(block_of(statement, file))
    if name is None or statement not in block or not _reads_gradient(statement, name):
        return ()
    rest = block[block.index(statement) :]
    last = max(at for at, one in enumerate(rest) if _reads_gradient(one, name))
    return in_block(file, rest[: last + 1], f"if {name}.grad is not None:")


def _in_comprehension(statement: ast.stmt, file: SourceFile) -> tuple[Edit, ...]:
    """`sum(p.grad.norm() for p in net.parameters() if p.grad is not None)`."""
    for node in walk(statement):
        if not isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            continue
        last = node.generators[-1]
        name = _parameter(last.iter, last.target)
        if name is not None and _reads_gradient(node.elt, name):
            end = file.span(last.iter)[1]
            return (Edit(file=file.path, start=end, end=end, new=f" if {name}.grad is not None"),)
    return ()


def _parameter(iterated: ast.expr, target: ast.expr) -> str | None:
    """What a loop over `parameters()` or `named_parameters()` calls a parameter."""
    if owner_of(iterated) is None:
        return None
    last = target.elts[-1] if isinstance(target, ast.Tuple) else target
    return last.id if isinstance(last, ast.Name) else None


def _reads_gradient(node: ast.AST, name: str) -> bool:
    """Whether the gradient of a parameter is read or written."""
    return any(
        isinstance(one, ast.Attribute)
        and one.attr == "grad"
        and isinstance(one.value, ast.Name)
        and one.value.id == name
        for one in walk(node)
    )
