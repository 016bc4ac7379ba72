"""What a program puts under a label's key: `{"labels": row["stars"]}`, `batch["labels"] = stars`, `dict(labels=stars)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program

LABEL_KEYS = frozenset({"labels", "label", "label_ids"})
_SHOWN = frozenset({"log", "log_metrics", "log_dict", "dump", "dumps", "writerow", "print", "info", "format"})


class LabelPut(NamedTuple):
    """What is put under a label's key, and the function in which it is."""

    file: SourceFile
    node: ast.expr
    within: Function | ast.Lambda | None


def label_puts(program: Program) -> Iterator[LabelPut]:
    """What dictionaries, or entries that are written, hold under a label's key, or under that of a column renamed to it."""
    keys = LABEL_KEYS | set(_renamed(program))
    for file in program.parsed():
        yield from _puts(file, keys)


def _renamed(program: Program) -> Iterator[str]:
    """The columns that are renamed to a label's name: `data.rename_column("stars", "labels")`."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 2:
                old, new = (getattr(one, "value", None) for one in node.args)
                if node.func.attr == "rename_column" and isinstance(old, str) and new in LABEL_KEYS:
                    yield old


def _puts(file: SourceFile, keys: frozenset[str] | set[str]) -> Iterator[LabelPut]:
    """What a dictionary, or an entry that is written, holds under one of the keys."""
    for node in file.walk():
        pairs: list[tuple[object, ast.expr]] = []
        if isinstance(node, ast.Dict) and not _is_shown(node, file):
            pairs = [(getattr(key, "value", None), one) for key, one in zip(node.keys, node.values, strict=True)]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            pairs = [(getattr(node.targets[0].slice, "value", None), node.value)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
            pairs = [(one.arg, one.value) for one in node.keywords]
        yield from (LabelPut(file, one, _within(one, file)) for key, one in pairs if key in keys)


def _is_shown(node: ast.Dict, file: SourceFile) -> bool:
    """Whether a dictionary goes to a log or a file, and is no row."""
    above = file.parents.get(node)
    func = above.func if isinstance(above, ast.Call) else None
    return (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", None)) in _SHOWN


def _within(node: ast.expr, file: SourceFile) -> Function | ast.Lambda | None:
    above = file.parents.get(node)
    while above is not None and not isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        above = file.parents.get(above)
    return above
