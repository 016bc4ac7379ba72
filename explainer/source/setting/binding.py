"""What names are bound to, and what calls pass: the steps by which a value is followed back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program

_SPAWNS = ("spawn", "start_processes")
_STARTS = ("Process", "Thread")


@lru_cache(maxsize=4)
def calls_by_name(program: Program) -> dict[str, list[tuple[SourceFile, ast.Call]]]:
    """Every call of the program by the last part of what it calls."""
    found: dict[str, list[tuple[SourceFile, ast.Call]]] = {}
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call):
                name = (program.names(file).qualified(node.func) or "").rpartition(".")[2]
                found.setdefault(name, []).append((file, node))
                if name == "partial" and node.args:
                    partial = (dotted_name(node.args[0]) or "").rpartition(".")[2]
                    found.setdefault(partial, []).append((file, node))
                started = _started(node, name or getattr(node.func, "attr", ""))
                if started is not None:
                    target = (dotted_name(started.func) or "").rpartition(".")[2]
                    found.setdefault(target, []).append((file, started))
    return found


def _started(call: ast.Call, name: str) -> ast.Call | None:
    """The call that a new process or thread makes: `worker(rank, cfg)` of `mp.spawn(worker, args=(cfg,))`."""
    named = {one.arg: one.value for one in call.keywords}
    is_spawned = name in _SPAWNS
    target = named.get("fn", call.args[0] if call.args else None) if is_spawned else named.get("target")
    given = named.get("args", call.args[1] if is_spawned and len(call.args) > 1 else None)
    if target is None or name not in (*_SPAWNS, *_STARTS) or not isinstance(given, (ast.Tuple, ast.List)):
        return None
    # The rank, which nobody writes: any expression that is no setting stands for it.
    first = [target] if is_spawned else []
    handed = named.get("kwargs")
    pairs = zip(handed.keys, handed.values, strict=True) if isinstance(handed, ast.Dict) else ()
    words = [ast.keyword(str(one.value), value) for one, value in pairs if isinstance(one, ast.Constant)]
    made = ast.Call(func=target, args=[*first, *given.elts], keywords=words)
    return ast.copy_location(made, call)


class Binding(NamedTuple):
    """A value that a statement gives to a name, in a function or in the module; `end` is where that is done."""

    scope: ast.AST | None
    end: tuple[int, int]
    value: ast.expr


@lru_cache(maxsize=256)
def bindings_of(file: SourceFile) -> dict[str, list[Binding]]:
    """Every binding of a file by name, in the order of the text."""
    found: dict[str, list[Binding]] = {}
    for node in file.walk():
        for name, value in bound_values(node):
            scope = file.enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef) or file.tree
            if isinstance(node, ast.With):  # what it binds is known in its own block
                end = node.lineno, node.col_offset
            else:
                end = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
            found.setdefault(name, []).append(Binding(scope, end, value))
    return {name: sorted(ones, key=lambda one: one.end) for name, ones in found.items()}


def bound_values(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The plain names that a statement binds, each with its value; a whole tuple where its parts are not written."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Name):
            yield target.id, value
        elif isinstance(target, ast.Tuple):
            parts = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else []
            for at, one in enumerate(target.elts):
                if isinstance(one, ast.Name):
                    yield one.id, parts[at] if parts else value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        yield node.target.id, node.value
    elif isinstance(node, ast.With):
        for item in node.items:
            if isinstance(item.optional_vars, ast.Name):
                yield item.optional_vars.id, item.context_expr


def parameters_of(function: Function) -> list[str]:
    """The names of a function's parameters."""
    arguments = function.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def argument_of(name: str, function: Function, call: ast.Call) -> ast.expr | None:
    """The expression that a call gives to a parameter, by keyword or by position."""
    for one in call.keywords:
        if one.arg == name:
            return one.value
    positional = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    if positional[:1] in (["self"], ["cls"]):
        positional = positional[1:]
    if name not in positional:
        return None
    at = positional.index(name)
    given = call.args[: at + 1]
    return given[at] if len(given) > at and not any(isinstance(one, ast.Starred) for one in given) else None


def default_of(name: str, function: Function) -> ast.expr | None:
    """The default of a parameter; None where it has none."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return next((value for one, value in pairs if one.arg == name), None)
