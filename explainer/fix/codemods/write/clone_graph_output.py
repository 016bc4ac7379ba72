"""An output of a CUDA graph that is kept beyond the next replay is cloned: `codes.append(encode(x).clone())`.

Kept is what goes into a list, a dictionary, an attribute or a comprehension, what the next replay is given, and what another
replay in the same function follows before it is read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.graph.cuda_graph import find_replays
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, scope_of, walk_scope
from explainer.source.value.lineage import loop_of

_REFUSED = "accessing tensor output of CUDAGraphs that has been overwritten"
_KEEPS = frozenset({"append", "appendleft", "add", "insert", "extend", "setdefault", "update", "put"})
_COLLECTIONS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all outputs that are kept where it failed; else one for all of the program."""
    if _REFUSED not in message_of(context):
        return
    replays = list(find_replays(context.program))
    kept = [(file, one) for file, one in replays if _is_kept(one, file, replays)]
    scopes = {scope_of(statement, file) for file, statement in failing_statements(context)}
    near = [(file, one) for file, one in kept if scope_of(one, file) in scopes]
    chosen = near or kept
    if chosen:
        file, first = chosen[0]
        yield Proposal(
            edits=tuple(put_method(where, one, ".clone()") for where, one in chosen),
            culprit=culprit_of(file, first, "keeps an output whose memory the next replay of the graph writes"),
            belief=2.0 if near else 1.0,
            title=f"Clone what is kept beyond the next call: `{file.segment(first)}.clone()`",
        )


def _is_kept(node: ast.expr, file: SourceFile, replays: list[tuple[SourceFile, ast.expr]]) -> bool:
    """Whether an output is still wanted when the graph is replayed again."""
    above = file.parents.get(node)
    if isinstance(above, ast.keyword):
        above = file.parents.get(above)
    if isinstance(above, _COLLECTIONS):
        return not _is_unpacked(above, file)
    if isinstance(above, ast.Call):
        return isinstance(above.func, ast.Attribute) and above.func.attr in _KEEPS and above.func is not node
    if not isinstance(above, (ast.Assign, ast.AnnAssign)) or above.value is not node:
        return False
    target = above.targets[0] if isinstance(above, ast.Assign) else above.target
    if isinstance(target, (ast.Attribute, ast.Subscript)):
        return True
    return isinstance(target, ast.Name) and _is_read_later(target.id, above, file, replays)


def _is_unpacked(collection: ast.AST, file: SourceFile) -> bool:
    """Whether a tuple is only there to be taken apart in the same statement: `a, b = f(x), 1`."""
    above = file.parents.get(collection)
    return isinstance(collection, ast.Tuple) and not isinstance(above, (ast.Assign, ast.Return, ast.Call))


def _is_read_later(
    name: str, statement: ast.stmt, file: SourceFile, replays: list[tuple[SourceFile, ast.expr]]
) -> bool:
    """Whether a name is put into what is kept, carried into the next round, or read behind another replay of its function."""
    scope = scope_of(statement, file)
    for bound in bounds_of(scope):
        is_put = isinstance(bound.node, ast.Name) and bound.node.id == name and bound.statement is not statement
        if is_put and (bound.fills or bound.name.startswith("self.")):
            return True
    loop = loop_of(statement, file)
    uses = [one for one in walk_scope(scope) if isinstance(one, ast.Name) and one.id == name]
    reads = [one for one in uses if isinstance(one.ctx, ast.Load)]
    if loop is not None and any(
        one in set(walk(loop)) and (one.lineno, one.col_offset) < _end_of(statement) for one in reads
    ):
        return True
    others = [
        one
        for where, one in replays
        if where is file and scope_of(one, file) is scope and (one.lineno, one.col_offset) > _end_of(statement)
    ]
    return any(_end_of(other) <= (one.lineno, one.col_offset) for other in others[:1] for one in reads)


def _end_of(node: ast.AST) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0  # type: ignore[attr-defined]
