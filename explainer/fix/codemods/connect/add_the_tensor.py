"""A loss adds the tensor whose value was read for a log: `loss + 0.7 * terms["link"]` for `loss + 0.7 * log["link"]`.

A trace names the sum and the line that read the number. What is read there keeps its number, for whoever prints it; the sum takes
the tensor by the name that it has. One that has no name, as in `kl = divergence(z).item()`, keeps it where it is computed, and
is read where it is used otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.model.trace import ADDED, DEAD_TERM
from explainer.source.file import SourceFile
from explainer.source.loss.read_number import tensor_of
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import Bound, bounds_of, reaching, scope_of

_DEPTH = 3


@dataclass(frozen=True)
class _Number:
    """A part of a sum that is a number: what reads it, of which tensor, and how that one is spelled in the sum."""

    use: ast.expr
    read: ast.expr
    tensor: ast.expr
    spelled: str


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each sum that was seen to be given a number which was read in the same function."""
    read = {(file.path, line.line) for line, file, _ in traced_statements(DEAD_TERM, context, guesses=True)}
    for line, file, statement in traced_statements(ADDED, context):
        lines = {number for path, number in read if path == file.path}
        numbers = [one for part in _summed(statement) for one in _numbers_of(part, file) if _stands_on(one.read, lines)]
        found = [_edits(one, statement, file) for one in numbers]
        edits = tuple(edit for one in found for edit in one or ())
        if edits and all(found):
            yield Proposal(edits=edits, culprit=culprit_of(file, statement, line.says), belief=2.0)


def _stands_on(node: ast.AST, lines: set[int]) -> bool:
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    return any(first <= line <= last for line in lines)


def _summed(statement: ast.stmt) -> Iterator[ast.expr]:
    """The parts of the sums of a statement: operands of `+`, what `+=` adds, what `sum` is given as a list."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        yield statement.value
    for node in walk(statement):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield from (one for one in (node.left, node.right) if not _is_sum(one))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sum" and node.args:
            yield from node.args[0].elts if isinstance(node.args[0], (ast.List, ast.Tuple)) else ()


def _is_sum(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)


def _uses(part: ast.expr) -> Iterator[ast.expr]:
    """The factors of a part of a sum: the names, entries and attributes that it multiplies."""
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
        yield from _uses(part.left)
        yield from _uses(part.right)
    elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div):
        yield from _uses(part.left)
    elif isinstance(part, (ast.Name, ast.Subscript, ast.Attribute)):
        yield part


def _numbers_of(part: ast.expr, file: SourceFile) -> Iterator[_Number]:
    """The numbers among the factors of a part; not those that weigh another tensor of the same table."""
    uses = list(_uses(part))
    for use in uses:
        for one in _numbers(use, file):
            table = one.spelled.partition("[")[0]
            if not any(other is not use and file.segment(other).partition("[")[0] == table for other in uses):
                yield one


def _numbers(use: ast.expr, file: SourceFile, depth: int = 0) -> Iterator[_Number]:
    """The number that a name, an entry or an attribute is, where one line of its function binds it."""
    if isinstance(use, ast.Name):
        bound = _only(use.id, use, file)
        tensor = tensor_of(bound.node) if bound is not None else None
        if bound is not None and tensor is not None:
            yield _Number(use, bound.node, tensor, file.segment(tensor))
        elif bound is not None and depth < _DEPTH and len(_loads(use.id, use, file)) == 1:
            for one in (each for part in [bound.node] for each in _uses(part)):
                yield from _numbers(one, file, depth + 1)
    elif isinstance(use, (ast.Subscript, ast.Attribute)):
        found = _entry(use, file)
        tensor = tensor_of(found) if found is not None else None
        if found is not None and tensor is not None:
            spelled = _spelled(found, tensor, use, file)
            if spelled is not None:
                yield _Number(use, found, tensor, spelled)


def _entry(use: ast.Subscript | ast.Attribute, file: SourceFile) -> ast.expr | None:
    """What is bound to `log["kl"]` or `stats.kl`: by itself, in a display, by a keyword, or in a comprehension."""
    name = dotted_name(use.value)
    key = use.attr if isinstance(use, ast.Attribute) else getattr(use.slice, "value", None)
    bounds = reaching(name, use, file) if name is not None else []
    own = [one for one in bounds if one.fills and one.key == key and isinstance(use, ast.Subscript)]
    if own or not bounds:
        return own[0].node if len(own) == 1 else None
    plain = [one for one in bounds if not one.fills]
    made = plain[0].node if len(plain) == 1 and plain[0].pick is None and not plain[0].is_element else None
    if isinstance(made, ast.Dict):
        pairs = zip(made.keys, made.values, strict=True)
        return next((one for at, one in pairs if isinstance(at, ast.Constant) and at.value == key), None)
    if isinstance(made, ast.Call):
        return next((one.value for one in made.keywords if one.arg == key), None)
    return made.value if isinstance(made, ast.DictComp) and isinstance(use, ast.Subscript) else None


def _spelled(read: ast.expr, tensor: ast.expr, use: ast.expr, file: SourceFile) -> str | None:
    """The tensor as the sum can name it; in a comprehension over `terms.items()` that is the entry of the same key."""
    above = file.parents.get(read)
    if not isinstance(above, ast.DictComp):
        return file.segment(tensor)
    loop = above.generators[0]
    if len(above.generators) != 1 or loop.ifs or not isinstance(use, ast.Subscript):
        return None
    key = file.segment(use.slice)
    if isinstance(loop.target, ast.Tuple) and isinstance(loop.iter, ast.Call) and len(loop.target.elts) == 2:
        of = loop.iter.func
        names = [getattr(one, "id", None) for one in loop.target.elts]
        is_items = isinstance(of, ast.Attribute) and of.attr == "items" and dotted_name(of.value) is not None
        is_pair = names == [getattr(above.key, "id", ""), getattr(tensor, "id", "")]
        return f"{file.segment(of.value)}[{key}]" if is_items and is_pair and isinstance(of, ast.Attribute) else None
    is_by_key = isinstance(tensor, ast.Subscript) and dotted_name(tensor.slice) == dotted_name(loop.target)
    if isinstance(tensor, ast.Subscript) and is_by_key and dotted_name(above.key) == dotted_name(loop.target):
        return f"{file.segment(tensor.value)}[{key}]"
    return None


def _edits(number: _Number, statement: ast.stmt, file: SourceFile) -> list[Edit] | None:
    """The tensor in the sum; where it has no name of its own, the tensor under the number's name."""
    if _is_plain(number.tensor) and _is_same(number, file):
        return [edit_of(file, number.use, number.spelled)]
    if not isinstance(number.use, ast.Name) or _is_plain(number.tensor):
        return None
    edits = [edit_of(file, number.read, number.spelled)]
    for one in _loads(number.use.id, number.use, file):
        in_text = file.enclosing(one, ast.JoinedStr)  # which writes a tensor of one value as its value
        if one not in set(walk(statement)) and in_text is None:
            edits.append(edit_of(file, one, f"{number.use.id}.item()"))
    return edits


def _is_plain(tensor: ast.expr) -> bool:
    """Whether an expression only names something."""
    return all(isinstance(one, (ast.Name, ast.Attribute, ast.Subscript, ast.Constant)) for one in walk(tensor))


def _is_same(number: _Number, file: SourceFile) -> bool:
    """Whether the names of the tensor stand for the same in the sum as where the number was read."""
    scope = ast.parse(number.spelled, mode="eval")
    names = {one.id for one in ast.walk(scope) if isinstance(one, ast.Name)}
    own = {one.id for one in walk(number.use) if isinstance(one, ast.Name)}
    return all(_reach(name, number.read, file) == _reach(name, number.use, file) for name in names - own)


def _reach(name: str, node: ast.AST, file: SourceFile) -> list[int]:
    return [id(one.statement) for one in reaching(name, node, file)]


def _only(name: str, use: ast.expr, file: SourceFile) -> Bound | None:
    """The one plain binding of a name in its function."""
    bounds = [one for one in bounds_of(scope_of(use, file)) if one.name == name]
    found = bounds[0] if len(bounds) == 1 and reaching(name, use, file) == bounds else None
    return found if found is not None and found.pick is None and not (found.is_element or found.fills) else None


def _loads(name: str, use: ast.expr, file: SourceFile) -> list[ast.Name]:
    """The places of a function that read a name."""
    return [
        one
        for one in walk(scope_of(use, file))
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    ]
