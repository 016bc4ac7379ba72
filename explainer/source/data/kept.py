"""What the data sets of a program keep, or are given: the expressions that make it, wherever they stand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.data.loader import find_loaders
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.value.binding import Value, bounds_of, find_calls
from explainer.source.value.resolve import resolver_of

DATA_SETS = ("torch.utils.data.", "torchvision.datasets.")
_NO_DATA = ("DataLoader", "Sampler")
_MAX_BASES = 8


def is_data_set(owner: ast.ClassDef, file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether a class is a data set: by its bases, or because a loader is given one."""
    if any(one is owner for one in program.once(_loaded)):
        return True
    for base in owner.bases if depth <= _MAX_BASES else ():
        if _is_of_torch(base, file, program):
            return True
        above = resolver_of(program).find_class(base, file)
        if above is not None and above[1] is not owner and is_data_set(above[1], above[0], program, depth + 1):
            return True
    return False


def _is_of_torch(called: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a class is one of torch's data sets: no loader and no sampler."""
    name = program.names(file).qualified(called.value if isinstance(called, ast.Subscript) else called) or ""
    return name.startswith(DATA_SETS) and not name.endswith(_NO_DATA) and name.rpartition(".")[2][:1].isupper()


def _loaded(program: Program) -> Iterator[ast.ClassDef]:
    for loader in find_loaders(program):
        rows = loader.given("dataset", 0)
        if rows is not None:
            yield from (owner for _, owner in resolver_of(program).classes_of(Value(rows, loader.file)))


def kept_values(program: Program) -> Iterator[Value]:
    """What data sets keep of themselves, and what they and loaders are given."""
    for file in program.parsed():
        for owner in program.names(file).classes.values():
            if is_data_set(owner, file, program):
                yield from _kept_by(owner, file)
    for file, call in find_calls(program):
        if _makes_data_set(call, file, program):
            for one in (*call.args, *(keyword.value for keyword in call.keywords)):
                yield Value(one.value if isinstance(one, ast.Starred) else one, file)
    for loader in find_loaders(program):
        rows = loader.given("dataset", 0)
        if rows is not None and not resolver_of(program).classes_of(Value(rows, loader.file)):
            yield Value(rows, loader.file)


def _kept_by(owner: ast.ClassDef, file: SourceFile) -> Iterator[Value]:
    for method in owner.body:
        for bound in bounds_of(method) if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) else ():
            if bound.name.startswith("self."):
                yield Value(bound.node, file, pick=bound.pick, statement=bound.statement)


def _makes_data_set(call: ast.Call, file: SourceFile, program: Program) -> bool:
    if _is_of_torch(call.func, file, program):
        return True
    found = resolver_of(program).find_class(call.func, file)
    return found is not None and is_data_set(found[1], found[0], program)
