"""The place that says which dtype an expression is: `net.to(getattr(torch, cfg.weights))` to the line that says "float16"."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.setting.flow import dictionaries_behind, settings_behind
from explainer.source.setting.setting import Setting
from explainer.source.text import TextFile
from explainer.source.tree import walk
from explainer.source.value.binding import Value, find_calls
from explainer.source.value.resolve import resolver_of

_ALIASES = {"half": "float16", "float": "float32", "double": "float64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedDtype:
    """One place that says a dtype: a word of a setting, or the dtype itself in the program (`setting` is None).

    `words` are the other words that the program reads there, by their dtype.
    """

    dtype: str
    file: TextFile
    span: tuple[int, int]
    setting: Setting | None = None
    words: Mapping[str, str] = field(default_factory=dict)


def dtypes_asked(expr: ast.expr, file: SourceFile, program: Program) -> Iterator[AskedDtype]:
    """The places that say which dtype an expression is; none where that does not show."""
    told: set[tuple[str, tuple[int, int]]] = set()
    for one in _asked(expr, file, program):
        if (one.file.path, one.span) not in told:
            told.add((one.file.path, one.span))
            yield one


def is_read_otherwise(asked: AskedDtype, program: Program) -> bool:
    """Whether autocast computes in what a place says too, or the program compares it with a word."""
    for file, part in _given_to_autocast(program):
        if any(_is_same(one, asked) for one in dtypes_asked(part, file, program)):
            return True
    key = asked.setting.path[-1] if asked.setting is not None else None
    return any(
        _names(part, key) and any(one.span == asked.span for one in settings_behind(part, file, program))
        for file in program.parsed()
        for node in file.walk()
        if key is not None and isinstance(node, ast.Compare)
        for part in (node.left, *node.comparators)
    )


def autocast_word(asked: AskedDtype, program: Program) -> str | None:
    """The word by which the same setting asks autocast for that dtype, out of a table: "amp" where "fp16" casts the weights.

    None where autocast takes none from it, or one of several words.
    """
    found: set[str] = set()
    for file, part in _given_to_autocast(program) if asked.setting is not None else ():
        taken = _taken(part)
        if taken is not None and any(one.span == asked.span for one in settings_behind(taken[1], file, program)):
            found |= {word for word, dtype in _table(taken[0], file, program).items() if dtype == asked.dtype}
    return found.pop() if len(found) == 1 else None


def _given_to_autocast(program: Program) -> Iterator[tuple[SourceFile, ast.expr]]:
    """What calls of autocast are given, also partial ones."""
    for file, call in find_calls(program):
        names = program.names(file)
        func = call.args[0] if call.args and names.is_call(call, "functools.partial") else call.func
        if (names.qualified(func) or "").endswith("autocast"):
            yield from ((file, one) for one in (*call.args, *(one.value for one in call.keywords)) if one is not func)


def dtype_name(node: ast.expr, names: Names) -> str | None:
    """`float16` for `torch.float16` and `torch.half`; None for what is no attribute of torch."""
    name = names.qualified(node) or ""
    last = name.removeprefix("torch.")
    return _ALIASES.get(last, last) if name.startswith("torch.") and "." not in last else None


def _asked(expr: ast.expr, file: SourceFile, program: Program) -> Iterator[AskedDtype]:
    for value in (Value(expr, file), *resolver_of(program).behind(Value(expr, file))):
        node, names = value.node, program.names(value.file)
        dtype = dtype_name(node, names)
        if dtype is not None:
            yield AskedDtype(dtype=dtype, file=value.file, span=value.file.span(node))
        elif isinstance(node, ast.Call) and dotted_name(node.func) == "getattr" and len(node.args) > 1:
            if names.qualified(node.args[0]) == "torch":
                yield from _by_word(node.args[1], value.file, program, {})
        elif (taken := _taken(node)) is not None:
            yield from _by_word(taken[1], value.file, program, _table(taken[0], value.file, program))
        else:
            yield from _by_code(node, value.file, program)


def _by_word(word: ast.expr, file: SourceFile, program: Program, table: Mapping[str, str]) -> Iterator[AskedDtype]:
    """The settings whose words name an attribute of torch, or a key of a table of dtypes."""
    words = {dtype: key for key, dtype in reversed(list(table.items()))}
    for setting in settings_behind(word, file, program):
        said = str(setting.value)
        dtype = table.get(said) if table else _ALIASES.get(said, said)
        if dtype is not None:
            yield AskedDtype(dtype=dtype, file=setting.file, span=setting.span, setting=setting, words=words)


def _by_code(node: ast.expr, file: SourceFile, program: Program) -> Iterator[AskedDtype]:
    """The settings that are a dtype of torch themselves: `weights: torch.dtype = torch.float16`."""
    for setting in settings_behind(node, file, program):
        where = setting.file
        if isinstance(where, SourceFile):
            at = next(
                (one for one in where.walk() if isinstance(one, ast.Attribute) and where.span(one) == setting.span),
                None,
            )
            dtype = dtype_name(at, program.names(where)) if at is not None else None
            if dtype is not None:
                yield AskedDtype(dtype=dtype, file=where, span=setting.span)


def _taken(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """A table and what it is asked for: `DTYPES[cfg.weights]`, `DTYPES.get(cfg.weights)`."""
    if isinstance(node, ast.Subscript):
        return node.value, node.slice
    is_get = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
    return (node.func.value, node.args[0]) if is_get and node.args else None  # type: ignore[attr-defined]


def _table(node: ast.expr, file: SourceFile, program: Program) -> dict[str, str]:
    """The dtypes of a table by its words; empty where it is no such table."""
    found: dict[str, str] = {}
    for where, made in dictionaries_behind(node, file, program):
        for key, value in zip(made.keys, made.values, strict=True) if isinstance(made, ast.Dict) else ():
            dtype = dtype_name(value, program.names(where))
            if isinstance(key, ast.Constant) and dtype is not None:
                found[str(key.value)] = dtype
    return found


def _is_same(one: AskedDtype, other: AskedDtype) -> bool:
    return one.file.path == other.file.path and one.span == other.span


def _names(node: ast.expr, key: str | None) -> bool:
    """Whether an expression reads a setting of that name."""
    return any(
        key in (getattr(one, "attr", None), getattr(one, "id", None), getattr(one, "value", None)) for one in walk(node)
    )
