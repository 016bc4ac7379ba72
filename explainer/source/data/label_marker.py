"""Where a program shows that a label marks what has no label: by a constant's name, a comparison, or what labels are padded with."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.loss.loss import Loss
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import scope_of
from explainer.source.value.number import number_of

IGNORES = frozenset({"cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"})
_MARKS = re.compile(
    r"(?:^|_)(?:ignored?|void|unlabell?ed|unknown|unannotated|pad(?:ding)?|skip|missing|no_?label|dont_?care)(?:_|$)",
    re.IGNORECASE,
)
_LABELS = re.compile(
    r"(?:^|[_.\[])(?:labels?|masks?|targets?|tags?|truth|gt|y|classes|annotations?)(?:_|\b)", re.IGNORECASE
)
# What pads: the argument that holds the padding, by name and by position.
_PADS = {"pad_sequence": ("padding_value", 2), "pad": ("value", 3)}
_FULL = frozenset({"full", "full_like", "new_full"})


@dataclass(frozen=True)
class Mark:
    """A place that shows that a label is a marker; `name` is that of a constant of a module which holds it."""

    file: SourceFile
    node: ast.AST
    name: str | None = None


def leaves_labels_out(loss: Loss) -> bool:
    """Whether a loss is given an `ignore_index`, or options that may hold one."""
    return "ignore_index" in loss.options or any(one.arg is None for one in loss.made.keywords)


def marks_of(value: int, program: Program) -> Iterator[Mark]:
    """The places of a program that show that a label is a marker."""
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            name = _named(node, value, names)
            if name is not None or _is_padding(node, value, names) or _is_left_out(node, value, names):
                yield Mark(file, node, name)


def is_name_of_marker(name: str) -> bool:
    """Whether a name says that it marks something: `VOID`, `ignore_label`, `pad_id`."""
    return _MARKS.search(name) is not None


def is_name_of_labels(name: str) -> bool:
    """Whether a name says that it holds labels: `self.labels`, `mask`, `y`."""
    return _LABELS.search(name) is not None


def _named(node: ast.AST, value: int, names: Names) -> str | None:
    """The name of a constant of a module that has the value and says that it marks something."""
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    is_constant = isinstance(target, ast.Name) and node in getattr(names.file.tree, "body", ())
    if not is_constant or not isinstance(node, ast.Assign) or not isinstance(target, ast.Name):
        return None
    return target.id if number_of(node.value, names) == value and _MARKS.search(target.id) else None


def _is_padding(node: ast.AST, value: int, names: Names) -> bool:
    """Whether a node pads labels with the value: up to a length, or all of a tensor that labels are then written into.

    `torch.full((n,), -1)` and `[-1] * n` by themselves are as likely the labels of a class.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        given, count = (node.left, node.right) if isinstance(node.left, ast.List) else (node.right, node.left)
        if not isinstance(given, ast.List) or len(given.elts) != 1 or not isinstance(count, ast.BinOp):
            return False
        return isinstance(count.op, ast.Sub) and number_of(given.elts[0], names) == value and value < 0
    if not isinstance(node, ast.Call):
        return False
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    statement = names.file.statement(node)
    target = dotted_name(statement.targets[0]) if isinstance(statement, ast.Assign) else None
    is_full = called in _FULL and target is not None and _is_written(target, node, names.file)
    keyword, index = ("fill_value", 1) if is_full else _PADS.get(called, ("", 99))
    named = [one.value for one in node.keywords if one.arg == keyword]
    padding = [*named, *node.args[index : index + 1]]
    if not padding or number_of(padding[0], names) != value:
        return False
    return value < 0 or (target is not None and _LABELS.search(target) is not None)


def _is_written(name: str, node: ast.AST, file: SourceFile) -> bool:
    """Whether labels are written into rows of a tensor: no number, which would be a class beside the one it is filled with."""
    stored = [
        one.value
        for one in walk(scope_of(node, file))
        if isinstance(one, ast.Assign)
        and isinstance(one.targets[0], ast.Subscript)
        and dotted_name(one.targets[0].value) == name
    ]
    return bool(stored) and not any(isinstance(one, (ast.Constant, ast.UnaryOp)) for one in stored)


def _is_left_out(node: ast.AST, value: int, names: Names) -> bool:
    """Whether a node is `mask != 255`, or `mask == 255` of which the opposite is taken."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return False
    sides = node.left, node.comparators[0]
    is_value = any(
        number_of(one, names) == value and _LABELS.search(names.file.segment(other))
        for one, other in (sides, sides[::-1])
    )
    above = names.file.parents.get(node)
    is_opposite = isinstance(above, ast.UnaryOp) and isinstance(above.op, (ast.Invert, ast.Not))
    return is_value and (isinstance(node.ops[0], ast.NotEq) or (isinstance(node.ops[0], ast.Eq) and is_opposite))
