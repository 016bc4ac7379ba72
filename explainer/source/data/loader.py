"""The loaders of a program: what their workers run, and the loops that take their batches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value, find_calls
from explainer.source.value.callee import callees_of
from explainer.source.value.resolve import resolver_of

LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
# What the default collate function says of rows that it cannot stack; in a worker it writes into memory of a fixed size.
NOT_STACKED = (
    "stack expects each tensor to be equal size",
    "each element in list of batch should be of equal size",
    "Trying to resize storage that is not resizable",
    "default_collate: batch must contain tensors",
)
_ITEMS = ("__getitem__", "__getitems__", "__iter__")
_WRAPS = frozenset({"tqdm", "trange", "track", "islice", "list", "iter", "cycle", "prefetch"})
_TAKES = frozenset({"next", "iter", "list", "cycle", "zip", "chain"})


@dataclass(frozen=True)
class Loader:
    """A call of `DataLoader`."""

    file: SourceFile
    call: ast.Call

    def given(self, name: str, position: int = 99) -> ast.expr | None:
        """What the call is given under a name."""
        named = next((one.value for one in self.call.keywords if one.arg == name), None)
        return named if named is not None else next(iter(self.call.args[position : position + 1]), None)


@dataclass(frozen=True)
class Worked:
    """What a worker runs: a function, a method or a lambda, and whether it makes a batch of rows rather than one row."""

    file: SourceFile
    function: Function | ast.Lambda
    is_batch: bool


def find_loaders(program: Program) -> list[Loader]:
    """Every call of `DataLoader`."""
    return [Loader(file, call) for file, call in find_calls(program) if program.names(file).is_call(call, *LOADERS)]


def worked_by(loader: Loader, program: Program) -> Iterator[Worked]:
    """What the workers of a loader run: its collate function, and what its data set makes a row with."""
    collate, rows = loader.given("collate_fn", 6), loader.given("dataset", 0)
    if collate is not None:
        for one in callees_of(collate, loader.file, program):
            yield Worked(one.file, one.function, is_batch=True)
    resolver = resolver_of(program)
    for file, owner in resolver.classes_of(Value(rows, loader.file)) if rows is not None else ():
        for name in _ITEMS:
            found = resolver.method(owner, name, file)
            if found is not None:
                yield Worked(*found, is_batch=False)


def loops_over(loader: Loader, program: Program) -> list[tuple[SourceFile, ast.For, ast.expr]] | None:
    """The loops over a loader's batches, with what each batch is bound to; None where something else takes them."""
    found: list[tuple[SourceFile, ast.For, ast.expr]] = []
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.For):
                taken = _taken(node.iter, node.target, file, program)
                if taken is not None and _is_made_by(taken[0], file, loader, program):
                    found.append((file, node, taken[1]))
            elif any(_is_made_by(one, file, loader, program) for one in _elsewhere(node)):
                return None
    return found or None


def _elsewhere(node: ast.AST) -> list[ast.expr]:
    """What a node takes elements of without a loop: a comprehension, `next(iter(x))`."""
    if isinstance(node, ast.comprehension):
        return [node.iter]
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _TAKES
    return list(node.args) if is_call and isinstance(node, ast.Call) else []


def _taken(
    node: ast.expr, target: ast.expr, file: SourceFile, program: Program, depth: int = 4
) -> tuple[ast.expr, ast.expr] | None:
    """What a loop goes over, seen through `enumerate` and a progress bar, and the target that gets its elements."""
    if isinstance(node, ast.Call) and node.args and depth:
        called = (program.names(file).qualified(node.func) or "").rpartition(".")[2]
        if called == "enumerate":
            is_pair = isinstance(target, ast.Tuple) and len(target.elts) == 2
            return _taken(node.args[0], target.elts[1], file, program, depth - 1) if is_pair else None  # type: ignore[attr-defined]
        if called in _WRAPS:
            return _taken(node.args[0], target, file, program, depth - 1)
    elif dotted_name(node) is not None and depth:
        behind = next(iter(resolver_of(program).behind(Value(node, file))), None)
        made = behind.node if behind is not None and behind.file is file else None
        called = (program.names(file).qualified(made.func) or "") if isinstance(made, ast.Call) else ""
        if made is not None and called.rpartition(".")[2] in (*_WRAPS, "enumerate"):
            return _taken(made, target, file, program, depth - 1)
    return node, target


def _is_made_by(node: ast.expr, file: SourceFile, loader: Loader, program: Program) -> bool:
    """Whether an expression is the loader that a call makes."""
    if isinstance(node, (ast.Constant, ast.ListComp, ast.GeneratorExp)):
        return False
    return any(one.node is loader.call for one in resolver_of(program).constructors_of(Value(node, file)))
