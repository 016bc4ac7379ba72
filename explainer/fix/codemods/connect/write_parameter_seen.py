"""A parameter that is written into a tensor through `.data` or `detach()` is written into the tensor itself.

`tokens.data[mask] = self.mask_token` becomes `tokens[mask] = self.mask_token`. Only where a trace saw that the parameter
never gets a gradient so. Where the tensor may be a leaf, or a backward may need what is overwritten, a clone is written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.model.patch import Edit
from explainer.model.trace import STARVING_CUT
from explainer.source.graph.alias import is_aliased, is_for_others
from explainer.source.graph.writable import is_writable
from explainer.source.graph.write import AUGMENTED, METHOD, SUBSCRIPT, Write, find_writes
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import bounds_of, scope_of

_BECAUSE = "the parameter gets the gradient of what it fills in, and what it replaces gets none"
_ALIASED = "another name still means the tensor as it was before the write, and would keep the old value"
# Views of which there are several: torch writes none of them in place.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hidden:
    """An expression without a graph, and the name of the tensor whose storage it shares; `at` is the statement that has it."""

    node: ast.expr
    name: str
    at: ast.stmt


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each traced write that keeps a parameter from its gradient."""
    writes = find_writes(context.program)
    for line, file, statement in traced_statements(STARVING_CUT, context):
        for write in writes:
            is_here = write.file is file and file.statement(write.node) is statement
            hidden = _hidden(write) if is_here and write.kind in (SUBSCRIPT, METHOD, AUGMENTED) else None
            if hidden is not None and not _is_value(write):
                yield _proposal(write, hidden, line.says, context.program)


def _proposal(write: Write, hidden: _Hidden, says: str, program: Program) -> Proposal:
    file = write.file
    tensor = replace(write, name=hidden.name)
    edits: tuple[Edit, ...] = (edit_of(file, hidden.node, hidden.name),)
    # For somebody else's tensor a clone would write nothing: torch refuses the write where it is not legal.
    is_copied = not is_writable(hidden.name, hidden.at, file, program) and not is_for_others(tensor, program)
    if is_copied:
        edits = (insert_before(file, hidden.at, f"{hidden.name} = {hidden.name}.clone()"), *edits)
    return Proposal(
        edits=edits,
        culprit=culprit_of(file, write.node, says),
        belief=2.0,
        applicability="unsafe",
        because=_ALIASED if is_copied and is_aliased(tensor, program) else _BECAUSE,
    )


def _hidden(write: Write) -> _Hidden | None:
    """What a write goes through: `x.data` and `x.detach()`, or a name that is bound to one of them and only written."""
    node = write.target
    while isinstance(node, ast.Subscript):
        node = node.value
    at = write.file.statement(write.node)
    if isinstance(node, ast.Name):
        bounds = [one for one in bounds_of(scope_of(write.node, write.file)) if one.name == node.id and not one.fills]
        bound = bounds[0] if len(bounds) == 1 and bounds[0].pick is None else None
        if bound is None or not isinstance(bound.statement, ast.Assign) or not _is_only_written(node.id, write):
            return None
        node, at = bound.statement.value, bound.statement
    owner = _owner(node)
    name = dotted_name(owner) if owner is not None else None
    return _Hidden(node=node, name=name, at=at) if name else None


def _owner(node: ast.expr) -> ast.expr | None:
    """`x` of `x.data` and `x.detach()`."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return node.value
    if isinstance(node, ast.Call) and not node.args and isinstance(node.func, ast.Attribute):
        return node.func.value if node.func.attr == "detach" else None
    return None


def _is_only_written(name: str, write: Write) -> bool:
    """Whether a function reads an alias nowhere but in this write: else what reads it may want values alone."""
    scope = scope_of(write.node, write.file)
    reads = [one for one in write.file.plain_names.get(name, ()) if isinstance(one.ctx, ast.Load)]
    return sum(scope_of(one, write.file) is scope for one in reads) == 1


def _is_value(write: Write) -> bool:
    """Whether the result of the write is used: it is the alias, not the tensor."""
    return isinstance(write.node, ast.Call) and not isinstance(write.file.parents.get(write.node), ast.Expr)
