"""How a program reads INI files with `configparser`: the calls that make a parser, those that fill it, those that ask it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name

MAKERS = frozenset(f"configparser.{one}" for one in ("ConfigParser", "RawConfigParser", "SafeConfigParser"))
TYPED = frozenset({"getfloat", "getint", "getboolean"})
NUMBERS = frozenset({"float", "int", "str"})  # what makes something else of a value's text; `bool("no")` is true
_FILLS = frozenset({"read", "read_file", "readfp", "read_string"})


def filling_calls(made: ast.Call, file: SourceFile) -> Iterator[ast.Call]:
    """The calls that give a parser its files: `cfg.read("run.ini")` for the `ConfigParser()` that `cfg` is bound to."""
    above = file.parents.get(made)
    if isinstance(above, ast.Assign):
        target = dotted_name(above.targets[0])
    else:
        target = dotted_name(above.target) if isinstance(above, ast.AnnAssign) else None
    if target is None:
        return
    scope = file.enclosing(made, ast.FunctionDef, ast.AsyncFunctionDef)
    is_local = scope is not None and "." not in target
    for node in file.walk():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _FILLS:
            continue
        if dotted_name(node.func.value) != target:
            continue
        if not is_local or file.enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef) is scope:
            yield node


def walked_parser(node: ast.DictComp) -> ast.expr | None:
    """The parser whose sections a comprehension makes into dictionaries: `{name: dict(cfg[name]) for name in cfg.sections()}`."""
    source, value = node.generators[0].iter, node.value
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Attribute) or source.func.attr != "sections":
        return None
    is_copy = isinstance(value, ast.Call) and dotted_name(value.func) == "dict" and isinstance(node.key, ast.Name)
    return source.func.value if is_copy else None
