"""Where a program gives each rank its part of the data: `order[rank::world]`, `range(rank, n, world)`, `chunks[rank]`.

Such parts differ by one row where the number does not divide. What the program pads or cuts to a multiple of the world is
no such part, and neither is what only an evaluation reads.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, scope_of
from explainer.source.value.resolve import resolver_of

RANKS = frozenset(
    {"rank", "local_rank", "global_rank", "world_rank", "my_rank", "rank_id", "process_index", "replica_id"}
)
_WORLDS = frozenset(
    {"world", "world_size", "worldsize", "num_replicas", "n_replicas", "num_ranks", "n_ranks", "nranks", "ranks", "nprocs"}
    | {"num_processes", "n_procs", "num_procs", "replicas"}
)  # fmt: skip
_RANK_CALLS = ("torch.distributed.get_rank",)
_WORLD_CALLS = ("torch.distributed.get_world_size",)
_SPLITS = frozenset({"tensor_split", "array_split", "chunk"})
_EVALUATES = re.compile(
    r"(?i)(?:^|_)(?:eval\w*|val|valid\w*|test\w*|predict\w*|infer\w*|generate|sample_images)(?:_|$)"
)
_COLLECTIVE = frozenset(
    {"backward", "all_reduce", "reduce", "broadcast", "all_gather", "all_gather_into_tensor", "reduce_scatter", "barrier"}
    | {"monitored_barrier", "all_to_all", "gather", "scatter", "training_step", "train_step"}
)  # fmt: skip
_JOINS = ("torch.distributed.algorithms.Join", "torch.distributed.algorithms.join.Join")
_DEPTH = 4


def uneven_shards(program: Program) -> Iterator[tuple[SourceFile, ast.expr]]:
    """The expressions that give each rank a part whose size may differ; none where the program trains such parts on purpose."""
    if _joins(program):
        return
    for file in program.parsed():
        for node in file.walk():
            filtered = _filter(node, file, program)
            shard = node if isinstance(node, ast.expr) and _is_shard(node, file, program) else filtered
            if shard is not None and not _is_evened(shard, filtered, file, program) and _is_trained(shard, file):
                yield file, shard


def _joins(program: Program) -> bool:
    """Whether ranks that are done shadow the others' collectives, or agree on the smallest number of batches."""
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            if isinstance(node, (ast.With, ast.AsyncWith)) and any(
                names.is_call(one.context_expr, *_JOINS, ".join") for one in node.items
            ):
                return True
            if (
                isinstance(node, ast.Attribute)
                and node.attr == "MIN"
                and (dotted_name(node) or "").endswith("ReduceOp.MIN")
            ):
                return True
            if (
                isinstance(node, ast.keyword)
                and node.arg == "drop_last"
                and getattr(node.value, "value", False) is True
            ):
                return True
    return False


def _is_shard(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """`x[rank::world]`, `range(rank, n, world)`, `islice(x, rank, None, world)`, `x.tensor_split(world)[rank]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        part = node.slice
        return part.upper is None and _is_rank(part.lower, file, program) and _is_world(part.step, file, program)
    if isinstance(node, ast.Subscript):
        made = _made(node.value, file, program)
        return made is not None and _is_rank(node.slice, file, program)
    if not isinstance(node, ast.Call):
        return False
    called = program.names(file).qualified(node.func) or ""
    if called == "range" and len(node.args) == 3:
        return _is_rank(node.args[0], file, program) and _is_world(node.args[2], file, program)
    is_slice = called in ("itertools.islice", "islice") and len(node.args) == 4
    return is_slice and _is_rank(node.args[1], file, program) and _is_world(node.args[3], file, program)


def _made(node: ast.expr, file: SourceFile, program: Program) -> ast.Call | None:
    """The call that splits data into a part for each rank: `x.tensor_split(2)`, `np.array_split(order, world)`."""
    found = node if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Name):
        behind = list(resolver_of(program).behind(Value(node, file)))
        found = behind[0].node if len(behind) == 1 and isinstance(behind[0].node, ast.Call) else None
    name = getattr(found.func, "attr", getattr(found.func, "id", "")) if found is not None else ""
    if found is None or name not in _SPLITS:
        return None
    into = [*found.args[-1:], *(one.value for one in found.keywords if one.arg in ("chunks", "indices_or_sections"))]
    is_count = any(isinstance(one, ast.Constant) or _is_world(one, file, program) for one in into)
    return found if is_count else None


def _filter(node: ast.AST, file: SourceFile, program: Program) -> ast.expr | None:
    """`i % world == rank` of a loop or a comprehension that takes or leaves each row by its number."""
    if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.BinOp) or len(node.ops) != 1:
        return None
    is_test = isinstance(file.parents.get(node), (ast.If, ast.comprehension))
    is_filter = isinstance(node.left.op, ast.Mod) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and is_test
    is_ours = is_filter and _is_world(node.left.right, file, program) and _is_rank(node.comparators[0], file, program)
    return node if is_ours else None


def _is_evened(shard: ast.expr, filtered: ast.expr | None, file: SourceFile, program: Program) -> bool:
    """Whether the scope around, or its class, computes with the remainder or the quotient of a division by the world."""
    around = program.names(file).class_of(shard) or scope_of(shard, file)
    return any(
        isinstance(one, ast.BinOp)
        and one is not getattr(filtered, "left", None)
        and _counts_rows(one, file)
        and any(_is_world(each, file, program) for each in walk(one.right) if isinstance(each, ast.expr))
        for one in walk(around)
    )


def _counts_rows(node: ast.BinOp, file: SourceFile) -> bool:
    """Whether a division is one into whole parts, `n // world`, `math.ceil(n / world)`, and not of the size of a batch."""
    if isinstance(node.op, ast.Div):
        above = file.parents.get(node)
        called = getattr(above, "func", None) if isinstance(above, ast.Call) else None
        return (dotted_name(called) or "").rpartition(".")[2] in ("ceil", "floor", "int", "round")
    return isinstance(node.op, (ast.Mod, ast.FloorDiv)) and "batch" not in _word(node.left)


def _is_trained(shard: ast.expr, file: SourceFile) -> bool:
    """Whether a shard is no evaluation's; one that a loop of its own goes through trains or meets other ranks there."""
    function = file.enclosing(shard, ast.FunctionDef, ast.AsyncFunctionDef)
    statement = file.statement(shard)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    words = [dotted_name(one) or "" for one in targets] + [getattr(function, "name", "")]
    if any(_EVALUATES.search(one.rpartition(".")[2]) for one in words):
        return False
    loops = _loops(shard, statement, targets, function)
    return not loops or any(_meets(one) for one in loops)


def _loops(
    shard: ast.expr, statement: ast.stmt, targets: list[ast.expr], function: ast.AST | None
) -> list[ast.For | ast.AsyncFor]:
    """The loops of a function that go through a shard itself, or through a name of it."""
    if isinstance(statement, (ast.For, ast.AsyncFor)) and shard in set(walk(statement.iter)):
        return [statement]
    names = {one.id for one in targets if isinstance(one, ast.Name)}
    return [
        one
        for one in (walk(function) if function is not None else ())
        if isinstance(one, (ast.For, ast.AsyncFor))
        and any(isinstance(each, ast.Name) and each.id in names for each in walk(one.iter))
        and not any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in walk(one))
    ]


def _meets(loop: ast.For | ast.AsyncFor) -> bool:
    """Whether a loop's body goes backward, runs a collective, or yields what another loop trains on."""
    return any(
        isinstance(one, (ast.Yield, ast.YieldFrom))
        or (isinstance(one, ast.Call) and getattr(one.func, "attr", getattr(one.func, "id", "")) in _COLLECTIVE)
        for one in walk(loop)
    )


def _is_rank(node: ast.expr | None, file: SourceFile, program: Program) -> bool:
    return _is_named(node, RANKS, _RANK_CALLS, file, program)


def _is_world(node: ast.expr | None, file: SourceFile, program: Program) -> bool:
    return _is_named(node, _WORLDS, _WORLD_CALLS, file, program)


def _is_named(
    node: ast.expr | None, words: frozenset[str], calls: tuple[str, ...], file: SourceFile, program: Program
) -> bool:
    """Whether an expression says a rank or the number of ranks: by its own name, or by what makes it."""
    todo, seen = ([(Value(node, file), 0)] if node is not None else []), set[int]()
    while todo:
        value, depth = todo.pop()
        one, names = value.node, program.names(value.file)
        if id(one) in seen:
            continue
        seen.add(id(one))
        if names.is_call(one, *calls) or _word(one) in words:
            return True
        if depth < _DEPTH and dotted_name(one) is not None:
            todo += [(each, depth + 1) for each in resolver_of(program).behind(value)]
    return False


def _word(node: ast.AST) -> str:
    """The last word of a name, an attribute, a key: `self.rank`, `cfg["world_size"]`, `os.environ["RANK"]`."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "int" and len(node.args) == 1:
        return _word(node.args[0])
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("get", "getenv") and node.args:
        node = node.args[0]
    elif isinstance(node, ast.Subscript):
        node = node.slice
    word = node.value if isinstance(node, ast.Constant) else (dotted_name(node) or "").rpartition(".")[2]
    return str(word).lower().lstrip("_")
