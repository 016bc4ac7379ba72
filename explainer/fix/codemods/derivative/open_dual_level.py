"""Dual tensors are made and read inside one `with forward_ad.dual_level():` block."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.patch import Edit
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import block_of

_MODULE = "torch.autograd.forward_ad"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the line that makes a dual tensor outside of a level."""
    if not context.has_failed:
        return
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


def _uses(statement: ast.stmt, file: object, program: Program) -> bool:
    names = next(program.names(one) for one in program.parsed() if one is file)
    return any(
        isinstance(node, ast.Call)
        and (names.qualified(node.func) or "") in (f"{_MODULE}.make_dual", f"{_MODULE}.unpack_dual")
        for node in walk(statement)
    )
