"""`x = x.clone()` before `x[i] = v`: the copy is written, the tensor that autograd saved stays."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.fix.suspicion import suspect
from explainer.source.alias import is_aliased, is_for_others
from explainer.source.write import SUBSCRIPT, Write, find_writes

_ALIASED = "another name still means the tensor as it was before the write, and would keep the old value"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each suspicious assignment to a part of a tensor."""
    for write in find_writes(context.program):
        belief = suspect(write, context) if write.kind == SUBSCRIPT else None
        if belief is None or write.name is None or is_for_others(write, context.program) or _is_cloned(write):
            continue
        assert isinstance(write.node, ast.stmt)
        aliased = is_aliased(write, context.program)
        yield Proposal(
            edits=(insert_before(write.file, write.node, f"{write.name} = {write.name}.clone()"),),
            culprit=culprit_of(write.file, write.node, f"writes a part of `{write.name}` in place"),
            belief=belief - (0.5 if aliased else 0.0),
            applicability="unsafe" if aliased else None,
            because=_ALIASED if aliased else None,
        )


def _is_cloned(write: Write) -> bool:
    """Whether the statement before the write has made the copy already."""
    above = write.file.parents.get(write.node)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(above, name, None) or []
        if write.node in block:
            at = block.index(write.node)
            before = block[at - 1] if at else None
            return (
                isinstance(before, ast.Assign) and write.file.segment(before) == f"{write.name} = {write.name}.clone()"
            )
    return False
