"""The names that a program writes as the keys of a mapping or the elements of a list, also in its configuration files."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.setting.flow import dictionaries_behind, documents_behind
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_DEPTH = 6
_WALKS = frozenset({"items", "keys"})
_SAME = frozenset({"list", "tuple", "sorted", "set"})


def roots_of(name: Value, program: Program, depth: int = 0) -> Iterator[Value]:
    """What a loop walks that binds a name: `weights` of `for name, weight in weights.items()`."""
    for one in resolver_of(program).behind(name) if depth < _DEPTH else ():
        if one.is_element and not one.pick:
            yield Value(walked(one.node), one.file, one.arguments)
        elif isinstance(one.node, ast.Name):
            yield from roots_of(one, program, depth + 1)


def walked(node: ast.expr) -> ast.expr:
    """The mapping or list that a loop goes over: `weights` of `sorted(weights.items())`."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _WALKS:
            node = node.func.value
        elif isinstance(node.func, ast.Name) and node.func.id in _SAME and len(node.args) == 1:
            node = node.args[0]
        else:
            break
    return node


def names_of(value: Value, program: Program, depth: int = 0) -> set[str] | None:
    """The names that a mapping has as its keys, or a list as its elements; None where they are not written."""
    node, file = value.node, value.file
    if isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
        words = _written(node.keys if isinstance(node, ast.Dict) else node.elts)
        return None if None in words else {str(one) for one in words}
    found: set[str] = set()
    for document, path, group in documents_behind(node, file, program):
        below = [one for one in document.settings if one.group == group and one.path[:-1] == path]
        found |= {str(one.value) if one.name.isdigit() else one.name for one in below}
    for _, one in dictionaries_behind(node, file, program):
        words = _written(one.keys) if isinstance(one, ast.Dict) else [each.arg for each in one.keywords]
        if None in words:
            return None
        found |= {str(word) for word in words}
    if found or depth > _DEPTH or not isinstance(node, (ast.Name, ast.Attribute)):
        return found or None
    behind = [one for one in resolver_of(program).behind(value) if one.pick is None and not one.is_element]
    known = [names_of(one, program, depth + 1) for one in behind]
    return set().union(*(one for one in known if one is not None)) if known and None not in known else None


def _written(nodes: Sequence[ast.expr | None]) -> list[str | None]:
    return [str(one.value) if isinstance(one, ast.Constant) else None for one in nodes]


def words_behind(value: Value, program: Program, depth: int = 0) -> set[str]:
    """The last names by which a mapping is handed on: `weights` and, where it is looked up, `loss_weights`."""
    node = value.node
    key = node.slice if isinstance(node, ast.Subscript) else None
    word = key.value if isinstance(key, ast.Constant) else (dotted_name(node) or "").rpartition(".")[2]
    found = {str(word)} if word else set()
    if isinstance(node, (ast.Name, ast.Attribute)) and depth < _DEPTH:
        for one in resolver_of(program).behind(value):
            found |= words_behind(one, program, depth + 1)
    return found
