"""Dual tensors are made and read inside one `with forward_ad.dual_level():` block.

What reads one behind the block, `unpack_dual(out).tangent`, finds None there, and fails wherever that is used.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, remove_statement
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import block_of

_MODULE = "torch.autograd.forward_ad"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the line that makes a dual tensor outside of a level."""
    if not context.has_failed:
        return
    yield from _read_behind(context)
    for file, statement in crash_places(context):
        block = list(block_of(statement, file))
        used = [one for one in block if _uses(one, file, context.program)]
        around = file.enclosing(statement, ast.With)
        if statement not in used or around is not None:
            return
        row = block[block.index(statement) : block.index(used[-1]) + 1]
        start, end = file.line_start(row[0].lineno), file.span(row[-1])[1]
        indent = file.indent(statement.lineno)
        body = "\n".join(f"    {line}" if line.strip() else line for line in file.text[start:end].split("\n"))
        names = context.program.names(file).imports
        module = next((local for local, meant in names.items() if meant == _MODULE), _MODULE)
        new = f"{indent}with {module}.dual_level():{file.newline}{body}"
        why = "makes a dual tensor outside of a level of forward-mode differentiation"
        yield Proposal(
            edits=(Edit(file=file.path, start=start, end=end, new=new),),
            culprit=culprit_of(file, statement, why),
            belief=1.5,
        )
        return


def _read_behind(context: Context) -> Iterator[Proposal]:
    """What reads a dual tensor right behind its level is moved to its end, where the failure is that of a None."""
    if not any("NoneType" in one.message for one in context.incident.exceptions):
        return
    program = context.program
    for file in program.parsed():
        for level in (one for one in file.walk() if isinstance(one, ast.With) and _is_level(one, file, program)):
            block = list(block_of(level, file))
            behind = block[block.index(level) + 1 : block.index(level) + 2]
            for one in behind if behind and _reads(behind[0], file, program) else ():
                yield Proposal(
                    edits=(remove_statement(file, one), insert_after(file, level.body[-1], file.segment(one))),
                    culprit=culprit_of(file, one, "reads a dual tensor behind its level, where its tangent is None"),
                    belief=2.5,
                    is_origin=True,
                )


def _is_level(block: ast.With, file: SourceFile, program: Program) -> bool:
    names = program.names(file)
    return any(
        isinstance(one.context_expr, ast.Call) and names.is_call(one.context_expr, f"{_MODULE}.dual_level")
        for one in block.items
    )


def _reads(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a plain statement unpacks a dual tensor."""
    is_plain = isinstance(statement, (ast.Return, ast.Assign, ast.Expr))
    names = program.names(file)
    return is_plain and any(
        isinstance(one, ast.Call) and names.is_call(one, f"{_MODULE}.unpack_dual") for one in walk(statement)
    )


def _uses(statement: ast.stmt, file: object, program: Program) -> bool:
    names = next(program.names(one) for one in program.parsed() if one is file)
    return any(
        isinstance(node, ast.Call)
        and (names.qualified(node.func) or "") in (f"{_MODULE}.make_dual", f"{_MODULE}.unpack_dual")
        for node in walk(statement)
    )
