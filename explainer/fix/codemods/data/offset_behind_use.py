"""An offset into a batch grows behind its use: `edges + offset` first, `offset += len(nodes)` then.

Of a batch of graphs, or of any rows that are joined, each part's indices begin where the parts before it end. Where the offset
has grown by the part's own rows already, the last part's indices lie behind the end. Only where a trace saw the line make
others of allowed indices, and the offset begins at 0 before the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, remove_statement
from explainer.model.trace import INDEX
from explainer.source.file import SourceFile
from explainer.source.tree import walk
from explainer.source.value.lineage import binds, block_of, reads


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for a line that a trace saw add an offset to indices."""
    if not context.has_failed:
        return
    for line, file, statement in traced_statements(INDEX, context):
        loop = file.parents.get(statement)
        if line.operation not in ("add", "__add__", "__radd__") or not isinstance(loop, ast.For):
            continue
        for name in _added(statement):
            grows = [one for one in loop.body if isinstance(one, ast.AugAssign) and binds(one) == {name}]
            if len(grows) != 1 or not _is_before(grows[0], statement, loop) or not _begins_at_0(name, loop, file):
                continue
            last = [one for one in loop.body if name in reads(one, graph=False) and one is not grows[0]][-1]
            why = f"has `{name}` grow by the rows of this round before it is added to their indices"
            yield Proposal(
                edits=(remove_statement(file, grows[0]), insert_after(file, last, file.segment(grows[0]))),
                culprit=culprit_of(file, grows[0], why),
                belief=2.5,
            )


def _added(statement: ast.stmt) -> set[str]:
    """The names that stand in a sum: `offset` of `edges + offset`."""
    sums = [one for one in walk(statement) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add)]
    return {side.id for one in sums for side in (one.left, one.right) if isinstance(side, ast.Name)}


def _is_before(grows: ast.AugAssign, statement: ast.stmt, loop: ast.For) -> bool:
    is_sum = isinstance(grows.op, ast.Add) and isinstance(grows.target, ast.Name)
    return is_sum and loop.body.index(grows) < loop.body.index(statement)


def _begins_at_0(name: str, loop: ast.For, file: SourceFile) -> bool:
    """Whether a name is 0 before a loop, and is bound nowhere else in it."""
    before = [one for one in block_of(loop, file) if one.lineno < loop.lineno and name in binds(one)]
    inside = [one for one in walk(loop) if isinstance(one, ast.stmt) and one is not loop and name in binds(one)]
    if not before or len(inside) != 1 or not isinstance(before[-1], ast.Assign):
        return False
    value, target = before[-1].value, before[-1].targets[0]
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = list(zip(target.elts, value.elts, strict=False))
    given = [each for one, each in pairs if isinstance(one, ast.Name) and one.id == name]
    return len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value == 0
