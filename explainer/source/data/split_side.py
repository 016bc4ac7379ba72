"""Which split of the data a place of a program is about: what trains, or what is held out to evaluate.

By the words of its names: `train_rows`, `encode_valid`, `if split == "train":`, and of who uses the function around it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk

TRAIN, HELD_OUT = "train", "held out"
_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\w\s]")
_SIDES = dict.fromkeys(("train", "training", "trn", "fit"), TRAIN) | dict.fromkeys(
    ("val", "valid", "validation", "validate", "dev", "test", "tst", "eval", "evaluation", "evaluate", "holdout", "heldout", "held"),
    HELD_OUT,
)  # fmt: skip
_DEPTH = 2
_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Definition = Function | ast.ClassDef


def side_of(node: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> str | None:
    """The split that the nearest words around a node name; None where they name none, or both."""
    below = node
    for above in (node, *file.around(node)):
        found = _sides_at(above, below)
        if not found and isinstance(above, _DEFINED) and depth < _DEPTH:
            found = _sides_of_uses(above, file, program, depth)
        if found:
            return found.pop() if len(found) == 1 else None
        below = above
    return None


def side_of_test(test: ast.expr) -> str | None:
    """The split of which a condition is true: `train`, `self.split == "train"`, `not is_eval`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _other(side_of_test(test.operand))
    if isinstance(test, (ast.Name, ast.Attribute)):
        found = sides_of_word(test.id if isinstance(test, ast.Name) else test.attr)
        return found.pop() if len(found) == 1 else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        words = [one.value for one in walk(test.comparators[0]) if isinstance(one, ast.Constant)]
        found = set().union(*(sides_of_word(one) for one in words if isinstance(one, str)))
        side = found.pop() if len(found) == 1 else None
        return _other(side) if isinstance(test.ops[0], (ast.NotEq, ast.NotIn, ast.IsNot)) else side
    return None


def sides_of_word(word: str) -> set[str]:
    """The splits that a name speaks of."""
    return {_SIDES[one.lower()] for one in _TOKEN.findall(word) if one.lower() in _SIDES}


def without_side(word: str) -> str:
    """A name without what it says of the split: `encode_valid` and `encode_train` are both `encode`."""
    return "_".join(one.lower() for one in _TOKEN.findall(word) if one.lower() not in _SIDES)


def _other(side: str | None) -> str | None:
    return {TRAIN: HELD_OUT, HELD_OUT: TRAIN}.get(side or "")


def _sides_at(above: ast.AST, below: ast.AST) -> set[str]:
    if isinstance(above, ast.If):
        side = side_of_test(above.test)
        side = side if below in above.body else _other(side) if below in above.orelse else None
        return {side} if side is not None else set()
    if isinstance(above, (ast.For, ast.AsyncFor, ast.comprehension)):
        return _sides_in((above.target, above.iter))
    if isinstance(above, _DEFINED):
        return sides_of_word(above.name)
    is_plain = isinstance(above, ast.expr) or (isinstance(above, ast.stmt) and not hasattr(above, "body"))
    return _sides_in((above,)) if is_plain else set()


def _sides_in(nodes: Iterable[ast.AST]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        for one in walk(node):
            if isinstance(one, ast.Name):
                found |= sides_of_word(one.id)
            elif isinstance(one, ast.Attribute):
                found |= sides_of_word(one.attr)
            elif isinstance(one, ast.keyword):
                found |= sides_of_word(one.arg or "")
            elif isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.isidentifier():
                found |= sides_of_word(one.value)
    return found


def _sides_of_uses(definition: Definition, file: SourceFile, program: Program, depth: int) -> set[str]:
    """The splits in whose preparation a function or class of the program is named; those of `__getitem__` are its class's."""
    if definition.name.startswith("__") or isinstance(file.parents.get(definition), ast.ClassDef):
        return set()
    own = set(walk(definition))
    found: set[str] = set()
    for where in program.parsed():
        uses = (*where.plain_names.get(definition.name, ()), *where.attributes.get(definition.name, ()))
        for one in uses:
            if one not in own:
                side = side_of(one, where, program, depth + 1)
                found |= {side} if side is not None else {TRAIN, HELD_OUT}
    return found
