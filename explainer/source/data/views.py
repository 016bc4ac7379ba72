"""Several views of one batch that a program puts into one tensor, and whether they stand one behind the other or beside each other.

`torch.cat([aug(x) for _ in range(n)])` has the first view of every sample, then the second of every sample: labels are repeated
as a whole. `torch.stack([aug(one) for one in xs for _ in range(n)])` has the views of a sample beside each other.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.program import Program
from explainer.source.value.lineage import definitions, scope_of
from explainer.source.value.number import number_of

_NUMBERED = re.compile(r"_?(?:\d+|[a-d]|first|second|one|two|left|right|weak|strong)$", re.IGNORECASE)
_FLATTENS = frozenset({"flatten", "view", "reshape"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """`count` views of each sample, as the program writes their number; `is_beside` where those of a sample stand together."""

    count: str
    is_beside: bool


def views_of(node: ast.expr, at: ast.stmt, file: SourceFile, program: Program) -> Views | None:
    """How many views of one batch an expression joins at a statement; None where it joins none, or other things."""
    names = program.names(file)
    node = _behind(node, at, file, program)
    if not isinstance(node, ast.Call):
        return None
    func = node.func
    if names.is_call(node, "torch.cat", "torch.concat", "torch.concatenate") and _axis(node, names) in (None, 0):
        return _listed(_behind(node.args[0], at, file, program), file) if node.args else None
    if names.is_call(node, "torch.stack") and _axis(node, names) in (None, 0) and node.args:
        inner = _behind(node.args[0], at, file, program)
        return _of_samples(inner, file)
    if not isinstance(func, ast.Attribute):
        return None
    if (
        func.attr in ("repeat", "tile")
        and len(node.args) > 1
        and all(number_of(one, names) == 1 for one in node.args[1:])
    ):
        return Views(count=file.segment(node.args[0]), is_beside=False)
    if func.attr == "repeat_interleave" and node.args and not names.is_call(node, "torch.repeat_interleave"):
        return Views(count=file.segment(node.args[0]), is_beside=True) if _axis(node, names) == 0 else None
    stacked = _behind(func.value, at, file, program) if func.attr in _FLATTENS else None
    if isinstance(stacked, ast.Call) and names.is_call(stacked, "torch.stack") and _joins_first_two(node, names):
        found = _listed(_behind(stacked.args[0], at, file, program), file) if stacked.args else None
        axis = _axis(stacked, names)
        return Views(count=found.count, is_beside=axis == 1) if found is not None and axis in (None, 0, 1) else None
    return None


def _behind(node: ast.expr, at: ast.stmt, file: SourceFile, program: Program) -> ast.expr:
    """What a name was given last, where that is one assignment."""
    scope = scope_of(at, file, program) if isinstance(node, ast.Name) else None
    made = definitions(node.id, at, scope) if isinstance(node, ast.Name) and scope is not None else []
    only = made[0] if len(made) == 1 else None
    is_plain = isinstance(only, ast.Assign) and isinstance(only.targets[0], ast.Name)
    return only.value if is_plain and isinstance(only, ast.Assign) else node


def _axis(call: ast.Call, names: Names) -> float | None:
    """The axis of a call, as its second argument or by name; None where it gives none."""
    named = next((one.value for one in call.keywords if one.arg in ("dim", "axis")), None)
    given = named if named is not None else next(iter(call.args[1:2]), None)
    found = number_of(given, names) if given is not None else None
    return found if given is None or found is not None else -1


def _joins_first_two(node: ast.Call, names: Names) -> bool:
    """Whether a call makes one axis of the first two: `flatten(0, 1)`, `view(-1, *shape)`."""
    values = [number_of(one, names) for one in node.args[:2]]
    is_flatten = isinstance(node.func, ast.Attribute) and node.func.attr == "flatten"
    return values == [0, 1] if is_flatten else values[:1] == [-1]


def _listed(node: ast.expr, file: SourceFile) -> Views | None:
    """The views of a list of whole batches."""
    if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) > 1:
        return Views(count=str(len(node.elts)), is_beside=False) if _are_views(node.elts) else None
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and len(node.generators) == 1:
        one = node.generators[0]
        count = None if one.ifs or not _is_draw(node.elt, one.target) else _count(one.iter, file)
        return Views(count=count, is_beside=False) if count is not None else None
    return None


def _of_samples(node: ast.expr, file: SourceFile) -> Views | None:
    """The views of a list of single samples, whose inner loop runs fastest."""
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp)) or len(node.generators) != 2:
        return None
    if any(one.ifs for one in node.generators):
        return None
    counts = [_is_repeat(one) for one in node.generators]
    if counts.count(True) != 1:
        return None
    at = counts.index(True)
    count = _count(node.generators[at].iter, file)
    return Views(count=count, is_beside=at == 1) if count is not None else None


def _is_repeat(loop: ast.comprehension) -> bool:
    """Whether a loop counts, or goes through transforms, rather than through samples."""
    is_range = isinstance(loop.iter, ast.Call) and getattr(loop.iter.func, "id", "") == "range"
    word = getattr(loop.iter, "attr", getattr(loop.iter, "id", ""))
    return is_range or re.search(r"transform|augment|views|crops", word, re.IGNORECASE) is not None


def _is_draw(made: ast.expr, target: ast.expr) -> bool:
    """Whether each round makes another view of the same: the loop only counts, or its element is what is called."""
    counted = isinstance(target, ast.Name) and target.id == "_"
    if not isinstance(target, ast.Name):
        return False
    reads = [one for one in ast.walk(made) if isinstance(one, ast.Name) and one.id == target.id]
    called = [one.func for one in ast.walk(made) if isinstance(one, ast.Call)]
    return counted or not reads or all(one in called for one in reads)


def _count(node: ast.expr, file: SourceFile) -> str | None:
    """How often a loop runs, as the program writes it."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range":
        return file.segment(node.args[0]) if len(node.args) == 1 else None
    if isinstance(node, (ast.List, ast.Tuple)):
        return str(len(node.elts))
    return f"len({file.segment(node)})" if isinstance(node, (ast.Name, ast.Attribute)) else None


def _are_views(parts: list[ast.expr]) -> bool:
    """Whether expressions are views of one batch: the same call on the same, or names that differ by a number."""
    if all(isinstance(one, ast.Call) and one.args for one in parts):
        given = {tuple(ast.dump(each) for each in one.args) for one in parts if isinstance(one, ast.Call)}
        return len(given) == 1
    words = [ast.unparse(one) for one in parts if isinstance(one, (ast.Name, ast.Attribute))]
    stems = {_NUMBERED.sub("", word) for word in words}
    return len(words) == len(parts) and len(stems) == 1 and "" not in stems and len(set(words)) == len(words)
