"""Reads settings that stand in Python: keyword arguments, dictionaries, defaults of classes and functions, argparse, constants."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import NamedTuple

from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.setting.setting import ARGPARSE, ASSIGNED, DEFAULT, ITEM, KEYWORD, Code, Setting, Span


class _Place(NamedTuple):
    kind: str
    name: str
    owner: str | None
    key: Span | None
    group: int


@lru_cache(maxsize=256)
def read_python(file: SourceFile) -> tuple[Setting, ...]:
    """Every setting of a Python file, in the order of the text."""
    names = Names(file)
    found = [
        setting for node in file.walk() if isinstance(node, ast.expr) and (setting := setting_at(node, file, names))
    ]
    return tuple(sorted(found, key=lambda one: one.span))


def setting_at(node: ast.expr, file: SourceFile, names: Names) -> Setting | None:
    """The setting whose value an expression is; None where it is the value of none."""
    place = _place(node, file, names)
    if place is None:
        return None
    span = file.span(node)
    raw = file.text[span[0] : span[1]]
    hold = "a flag on the command line sets it" if place.kind == ARGPARSE and _is_switch(node) else None
    return Setting(
        path=(place.name,),
        value=literal(node, raw),
        raw=raw,
        file=file,
        key=place.key,
        span=span,
        line=file.line_of(place.key[0] if place.key else span[0]),
        kind=place.kind,
        group=place.group,
        owner=place.owner,
        hold=hold,
        is_flow=True,
    )


def literal(node: ast.expr, raw: str) -> object:
    """The value of a literal; `Code` for any other expression."""
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return Code(raw)
    return value


def _is_switch(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in ("store_true", "store_false")


def _place(node: ast.expr, file: SourceFile, names: Names) -> _Place | None:
    above = file.parents.get(node)
    if isinstance(above, ast.keyword):
        return _keyword(above, file, names)
    if isinstance(above, ast.Dict):
        return _item(node, above, file)
    if isinstance(above, ast.arguments):
        return _default(node, above, file)
    if isinstance(above, (ast.Assign, ast.AnnAssign)) and above.value is node:
        return _assigned(above, file)
    return None


def _keyword(keyword: ast.keyword, file: SourceFile, names: Names) -> _Place | None:
    call = file.parents.get(keyword)
    if keyword.arg is None or not isinstance(call, ast.Call):
        return None
    group = file.span(call)[0]
    start = file.offset(keyword.lineno, keyword.col_offset)
    flag = flag_of(call)
    if flag is not None and (keyword.arg == "default" or _is_switch(keyword.value)):
        return _Place(ARGPARSE, flag, None, None, group)
    return _Place(KEYWORD, keyword.arg, names.qualified(call.func), (start, start + len(keyword.arg)), group)


def flag_of(call: ast.Call) -> str | None:
    """The attribute that `parser.add_argument("--learning-rate")` makes; None for another call."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "add_argument":
        return None
    flags = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    named = [one.value.value for one in call.keywords if one.arg == "dest" and isinstance(one.value, ast.Constant)]
    long = [one for one in flags if one.startswith("--")] or flags
    return str(named[0]) if named else long[0].lstrip("-").replace("-", "_") if long else None


def _item(node: ast.expr, items: ast.Dict, file: SourceFile) -> _Place | None:
    at = next((at for at, one in enumerate(items.values) if one is node), None)
    key = items.keys[at] if at is not None else None
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        return None
    above = file.parents.get(items)
    owner = dotted_name(above.targets[0]) if isinstance(above, ast.Assign) else None
    return _Place(ITEM, key.value, owner, file.span(key), file.span(items)[0])


def _default(node: ast.expr, arguments: ast.arguments, file: SourceFile) -> _Place | None:
    function = file.parents.get(arguments)
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    name = next((one.arg for one, value in pairs if value is node), None)
    if name is None or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    return _Place(DEFAULT, name, function.name, None, file.span(function)[0])


def _assigned(statement: ast.Assign | ast.AnnAssign, file: SourceFile) -> _Place | None:
    """`x = 1`, `config.use_cache = True`, `cfg["lr"] = 1`, a field of a class."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    above = file.parents.get(statement)
    group = file.span(statement)[0]
    if isinstance(target, ast.Subscript):
        key = target.slice
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return _Place(ASSIGNED, key.value, dotted_name(target.value), file.span(key), group)
        return None
    name = dotted_name(target)
    if name is None or (isinstance(statement, ast.Assign) and len(statement.targets) > 1):
        return None
    owner, _, last = name.rpartition(".")
    end = file.span(target)[1]
    if isinstance(above, ast.ClassDef):
        return _Place(DEFAULT, last, above.name, (end - len(last), end), file.span(above)[0])
    return _Place(ASSIGNED, last, owner or None, (end - len(last), end), group)
