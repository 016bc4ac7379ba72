"""The setting that a configuration object of the program's own gives under a key: `config["lr"]` of a class that loads and merges files.

What such a class does with its files, defaults first, is not followed: the setting is the one of that name in all of them.
"""

from __future__ import annotations

import ast

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.setting.setting import Setting
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_CASTS = frozenset({"bool", "int", "float", "str"})
_LOADS = frozenset({"load", "loads", "safe_load", "full_load"})
_GIVES = ("__getitem__", "get", "__getattr__")


def settings_by_name(node: ast.expr, file: SourceFile, program: Program) -> list[Setting]:
    """The one setting of the name by which a configuration object is asked; none where there are several."""
    asked = _asked(node)
    if asked is None or not _is_configuration(Value(asked[0], file), program):
        return []
    found = [one for each in program.documents(asked[1]) for one in each.settings if one.path[-1:] == (asked[1],)]
    return found if len(found) == 1 else []


def _asked(node: ast.expr) -> tuple[ast.expr, str] | None:
    """The object and the key of `bool(config["sparse"])` and `config.get("sparse", False)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CASTS and node.args:
        return _asked(node.args[0])
    if isinstance(node, ast.Subscript):
        owner, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        owner, key = node.func.value, node.args[0]
    else:
        return None
    return (owner, key.value) if isinstance(key, ast.Constant) and isinstance(key.value, str) else None


def _is_configuration(value: Value, program: Program) -> bool:
    """Whether an object is of a class of the program that reads files and gives what it has read by keys."""
    for where, owner in resolver_of(program).classes_of(value):
        if any(resolver_of(program).method(owner, name, where) for name in _GIVES):
            return any(isinstance(one, ast.Call) and getattr(one.func, "attr", "") in _LOADS for one in walk(owner))
    return False
