"""`x = x.clone()` before `x[i] = v`: the copy is written, the tensor that autograd saved stays."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.suspicion import suspect
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.source.graph.alias import is_aliased, is_for_others, is_read_after
from explainer.source.graph.write import SUBSCRIPT, Write, find_writes
from explainer.source.name import dotted_name
from explainer.source.tree import walk

_ALIASED = "another name still means the tensor as it was before the write, and would keep the old value"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each suspicious assignment to a part of a tensor."""
    for write in find_writes(context.program):
        belief = suspect(write, context) if write.kind == SUBSCRIPT else None
        if belief is None or write.name is None or is_for_others(write, context.program) or _is_cloned(write):
            continue
        if "." not in write.name and not is_read_after(write, context.program):
            continue  # it is written for whoever owns it: the copy would be lost
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
    """Whether the statement before the write has made the copy already, or is a write that needs it as well."""
    above = write.file.parents.get(write.node)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(above, name, None) or []
        if write.node in block:
            at = block.index(write.node)
            before = block[at - 1] if at else None
            if not isinstance(before, ast.Assign):
                return False
            is_copy = write.file.segment(before) == f"{write.name} = {write.name}.clone()"
            return is_copy or (_is_part_of(before.targets[0], write) and not _reads_itself(write))
    return False


def _is_part_of(target: ast.expr, write: Write) -> bool:
    return isinstance(target, ast.Subscript) and dotted_name(target.value) == write.name


def _reads_itself(write: Write) -> bool:
    """Whether the written value is computed from the tensor, so that autograd may save it between the two writes."""
    if not isinstance(write.node, ast.Assign):
        return True
    return any(dotted_name(one) == write.name for one in walk(write.node.value))
