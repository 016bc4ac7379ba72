"""Which kernels of attention a program allows: what it gives to `torch.nn.attention.sdpa_kernel`, and where that is written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.tree import walk
from explainer.source.value.binding import Value, find_calls
from explainer.source.value.resolve import resolver_of

_KERNELS = ("torch.nn.attention.sdpa_kernel", "torch.nn.attention._sdpa_kernel")
_DEPTH = 6


@dataclass(frozen=True, kw_only=True)
class Backends:
    """What a call of `sdpa_kernel` allows.

    `written` is the expression in which it is written, in the file `where`; `spelled` is the class as that names it. Where it is
    an entry of a `table`, `key` picks it in the file `asked`, and `picked` is what that says.
    """

    file: SourceFile
    call: ast.Call
    where: SourceFile
    written: ast.expr
    names: frozenset[str]
    spelled: str
    table: ast.Dict | None = None
    key: ast.expr | None = None
    asked: SourceFile | None = None
    picked: str | None = None


def find_forced(program: Program) -> Iterator[Backends]:
    """The calls that say which kernels may run, as far as what they say can be read."""
    for file, call in find_calls(program):
        if program.names(file).is_call(call, *_KERNELS):
            given = (
                call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "backends"), None)
            )
            if given is not None:
                yield from _read(Value(given, file), file, call, program, _DEPTH)


def read_backends(node: ast.expr) -> frozenset[str] | None:
    """The names of the kernels in a literal, `SDPBackend.MATH` or a list of such; None for anything else."""
    parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    names = [one.attr for one in parts if _is_backend(one) and isinstance(one, ast.Attribute)]
    return frozenset(names) if parts and len(names) == len(parts) else None


def _is_backend(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and (dotted_name(node.value) or "").rpartition(".")[2] == "SDPBackend"


def _read(value: Value, file: SourceFile, call: ast.Call, program: Program, depth: int) -> Iterator[Backends]:
    """What an expression allows: a literal, a name of one, an entry of a table of them."""
    node, where = value.node, value.file
    names = read_backends(node)
    spelled = _spelled(node, where, program)
    if names is None and spelled is not None and _is_one(node, where, program):
        names = frozenset[str]()
    if names is not None and spelled is not None:
        yield Backends(file=file, call=call, where=where, written=node, names=names, spelled=spelled)
    elif isinstance(node, ast.Subscript) and depth:
        yield from _of_table(Value(node.value, where), node.slice, file, call, program)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        yield from _of_table(Value(node.func.value, where), node.args[0], file, call, program)
    elif depth and dotted_name(node) is not None:
        for one in resolver_of(program).behind(value):
            yield from _read(one, file, call, program, depth - 1)


def _spelled(node: ast.expr, file: SourceFile, program: Program) -> str | None:
    """How the class is named in an expression, or by the file's imports."""
    for one in walk(node):
        if _is_backend(one) and isinstance(one, ast.Attribute):
            return file.segment(one.value)
    imports = program.names(file).imports
    return next((name for name, meant in imports.items() if meant == "torch.nn.attention.SDPBackend"), None)


def _is_one(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether an expression is a kernel that is looked up by its name, or a list of what is named elsewhere."""
    names = program.names(file)
    if isinstance(node, ast.List):
        return bool(node.elts) and all(isinstance(one, (ast.Name, ast.Attribute)) for one in node.elts)
    looked_up = node.args[0] if isinstance(node, ast.Call) and names.is_call(node, "getattr") and node.args else None
    if isinstance(node, ast.Subscript):
        looked_up = node.value
    return looked_up is not None and (names.qualified(looked_up) or "").rpartition(".")[2] == "SDPBackend"


def _of_table(value: Value, key: ast.expr, file: SourceFile, call: ast.Call, program: Program) -> Iterator[Backends]:
    """The entries that a key picks: the one that is written, or those that settings name."""
    for table in resolver_of(program).behind(value):
        if not isinstance(table.node, ast.Dict):
            continue
        is_written = isinstance(key, ast.Constant)
        picked = [key.value] if is_written else [one.value for one in settings_behind(key, value.file, program)]  # type: ignore[attr-defined]
        for name, entry in zip(table.node.keys, table.node.values, strict=True):
            names, spelled = read_backends(entry), _spelled(entry, table.file, program)
            if isinstance(name, ast.Constant) and name.value in picked and names is not None and spelled is not None:
                yield Backends(
                    file=file, call=call, where=table.file, written=entry, names=names, spelled=spelled,
                    table=table.node, key=key, asked=value.file, picked=str(name.value),
                )  # fmt: skip
