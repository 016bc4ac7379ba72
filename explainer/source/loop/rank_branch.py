"""Collectives that one rank alone, or all but one, come to: `if rank == 0: dist.all_reduce(x)`, `if not is_main: return`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from explainer.source.data.shard import RANKS
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import block_of

_RANKS = RANKS | {"get_rank", "local_process_index"}
_MAIN = frozenset(
    {"is_main", "is_main_process", "is_local_main_process", "is_world_process_zero", "is_local_process_zero", "is_global_zero"}
    | {"is_master", "master", "master_process", "main_process", "is_rank_zero", "is_rank_0", "is_chief", "is_zero"}
)  # fmt: skip
# What tells ranks to wait for each other, and what hands a result to them.
_WAITS = ("torch.distributed.barrier", "torch.distributed.monitored_barrier", ".wait_for_everyone", ".barrier")
EXCHANGES = tuple(
    f"torch.distributed.{one}"
    for one in ("all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "broadcast", "reduce", "reduce_scatter")
)  # fmt: skip


class Alone(NamedTuple):
    """A statement with a collective among the `rest` of a block, all of which only some ranks come to behind `anchor`."""

    file: SourceFile
    anchor: ast.If
    statement: ast.stmt
    rest: Sequence[ast.stmt]
    waits: bool


def collectives_alone(program: Program) -> Iterator[Alone]:
    """The statements of collectives that stand in a branch of some ranks, or behind one that lets some ranks return."""
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            # Before an `elif` nothing can stand.
            if isinstance(node, ast.If) and asks_for_rank(node.test) and not file.segment(node).startswith("elif"):
                yield from _in_branches(node, file, names)


def _in_branches(branch: ast.If, file: SourceFile, names: Names) -> Iterator[Alone]:
    block, other = list(block_of(branch, file)), list(branch.orelse)
    if isinstance(branch.body[-1], (ast.Return, ast.Continue)) and not other and branch in block:
        other = block[block.index(branch) + 1 :]
    if _communicates(branch.body, names) and _communicates(other, names):
        return
    for block in (branch.body, other):
        for one in block:
            call = _collective(one, names)
            if call is not None:
                yield Alone(file, branch, one, block, waits=names.is_call(call, *_WAITS))


def _communicates(block: Sequence[ast.stmt], names: Names) -> bool:
    return any(_is_collective(node, names) for one in block for node in walk(one))


def _collective(statement: ast.stmt, names: Names) -> ast.Call | None:
    """The collective that a statement is, with or without a name for what it gives back."""
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    return value if isinstance(value, ast.Call) and _is_collective(value, names) else None


def _is_collective(node: ast.AST, names: Names) -> bool:
    return isinstance(node, ast.Call) and names.is_call(node, *_WAITS, *EXCHANGES)


def asks_for_rank(test: ast.expr) -> bool:
    """Whether a condition holds for one rank alone, or for all but one."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return asks_for_rank(test.operand)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        is_number = isinstance(test.comparators[0], ast.Constant)
        return is_number and _last(test.left) in _RANKS
    return _last(test) in _MAIN | _RANKS


def _last(node: ast.expr) -> str:
    name = dotted_name(node.func if isinstance(node, ast.Call) else node)
    return (name or "").rpartition(".")[2].lstrip("_").lower()
