"""Masks of minus infinity: where a program puts it into scores, or into what is added to them, and which rows it may fill."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.network.buffer import registered
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.number import number_of
from explainer.source.value.origin import KEEP, origins

_DEPTH = 8
_KEEP = KEEP | {
    "float",
    "double",
    "half",
    "bool",
    "type",
    "type_as",
    "long",
    "int",
    "byte",
    "masked_fill",
    "masked_fill_",
}
_SOFTMAX = frozenset({"softmax", "log_softmax", "logsumexp", "Softmax", "LogSoftmax"})
_OWNERS = ("torch", "torch.special", "torch.nn", "torch.nn.functional")
_FULL = {"torch.full": 1, "torch.full_like": 1, "new_full": 1}
_STRICT, _LOOSE = (ast.Gt, ast.Lt), (ast.GtE, ast.LtE)
Puts = Callable[[ast.expr, SourceFile], bool]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fill:
    """An expression that puts `value` into masked places: of `into`, where that is known, or of a new tensor.

    `hidden` is the condition of these places, and `shown` says that it is true of the others.
    """

    file: SourceFile
    node: ast.expr
    value: ast.expr
    into: ast.expr | None = None
    hidden: ast.expr | None = None
    shown: bool = False


def find_fills(program: Program, puts: Puts) -> Iterator[Fill]:
    """The places of a program that fill with a value of which `puts` holds."""
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            fill = _fill(node, file, names, puts)
            if fill is not None and puts(fill.value, file):
                yield fill


def _fill(node: ast.AST, file: SourceFile, names: Names, puts: Puts) -> Fill | None:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        return Fill(file=file, node=node.value, value=node.value, into=target.value, hidden=target.slice)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        value = next((one for one in (node.left, node.right) if puts(one, file)), None)
        return Fill(file=file, node=node, value=value) if value is not None else None
    return _of_call(node, file, names, puts) if isinstance(node, ast.Call) else None


def _of_call(node: ast.Call, file: SourceFile, names: Names, puts: Puts) -> Fill | None:
    called = names.qualified(node.func) or ""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if called in ("torch.where", "torch.masked_fill") and len(node.args) == 3:
        if called == "torch.masked_fill":
            into, hidden, value = node.args
            return Fill(file=file, node=node, value=value, into=into, hidden=hidden)
        at = next((index for index in (1, 2) if puts(node.args[index], file)), None)
        if at is None:
            return None
        return Fill(
            file=file, node=node, value=node.args[at], into=node.args[3 - at], hidden=node.args[0], shown=at == 2
        )
    if method in ("masked_fill", "masked_fill_") and isinstance(node.func, ast.Attribute) and len(node.args) == 2:
        return Fill(file=file, node=node, value=node.args[1], into=node.func.value, hidden=node.args[0])
    at = _FULL.get(called, _FULL.get(method))
    given = {one.arg: one.value for one in node.keywords}
    if at is not None and (len(node.args) > at or "fill_value" in given):
        return Fill(file=file, node=node, value=node.args[at] if len(node.args) > at else given["fill_value"])
    return None


def is_minus_infinity(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether an expression is minus infinity, however it is spelled, also by the name of a constant."""
    if _infinite(node, program.names(file)):
        return True
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return False
    found = list(origins(Value(node, file), program))
    return bool(found) and all(_infinite(one.node, program.names(one.file)) for one in found)


def _infinite(node: ast.expr, names: Names) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = node.operand
        return names.qualified(inner) in ("math.inf", "torch.inf", "numpy.inf") or _is_float(inner, "inf", "infinity")
    return _is_float(node, "-inf", "-infinity")


def _is_float(node: ast.expr, *words: str) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "float":
        return False
    text = node.args[0] if node.args else None
    return isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value.lower() in words


def softmax_parts(program: Program) -> Mapping[ast.AST, Reach]:
    """The expressions of which the argument of a softmax is the sum, through names and calls, and whether it has a gradient."""
    flow = flow_of(program)
    found: dict[ast.AST, Reach] = {}
    for file in program.parsed():
        for node in file.walk():
            argument = softmax_argument(node, file, program) if isinstance(node, ast.Call) else None
            reach = flow.reach_of(argument, file) if argument is not None else Reach.NONE
            for part in parts_of(Value(argument, file), program) if argument is not None and reach else ():
                found[part] = max(found.get(part, Reach.NONE), reach)
    return found


def softmax_argument(node: ast.Call, file: SourceFile, program: Program) -> ast.expr | None:
    """The argument of a call of a softmax: the function, the method or the module."""
    made = flow_of(program).constructor_of(node.func, file)
    called = program.names(file).qualified(made.func if made is not None else node.func) or ""
    owner, _, last = called.rpartition(".")
    if owner in _OWNERS and last in _SOFTMAX:
        return node.args[0] if node.args else None
    is_method = isinstance(node.func, ast.Attribute) and node.func.attr in _SOFTMAX
    return node.func.value if is_method and isinstance(node.func, ast.Attribute) else None


def parts_of(value: Value, program: Program, depth: int = 0) -> Iterator[ast.AST]:
    """What a value is the sum of, without the part of a matrix above its diagonal: no row of that is whole."""
    if depth > _DEPTH:
        return
    for one in origins(value, program):
        node, names = one.node, program.names(one.file)
        if _triangle(node, names) == "above":
            continue
        yield node
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
            below = [node.left, node.right]
        elif isinstance(node, ast.Subscript):
            below = [node.value]
        else:
            subject = kept_by(node)
            below = [subject] if subject is not None else []
        for each in below:
            yield from parts_of(replace(one, node=each), program, depth + 1)


def is_never_whole(hidden: ast.expr, file: SourceFile, program: Program, *, shown: bool = False) -> bool:
    """Whether a mask hides no position from itself, as a causal one does: no row of it is hidden as a whole.

    With `shown` the expression is true of what is seen.
    """
    return _leaves_diagonal(Value(hidden, file), program, shown=shown, depth=0)


def _leaves_diagonal(value: Value, program: Program, *, shown: bool, depth: int) -> bool:
    if depth > _DEPTH:
        return False
    given = [one for each in registered(value, program) for one in origins(each, program)]
    found = [*origins(value, program), *given]
    return bool(found) and all(_has_diagonal(one, program, shown=shown, depth=depth) for one in found)


def _has_diagonal(value: Value, program: Program, *, shown: bool, depth: int) -> bool:
    def below(node: ast.expr, *, shown: bool) -> bool:
        return _leaves_diagonal(replace(value, node=node), program, shown=shown, depth=depth + 1)

    node, names = value.node, program.names(value.file)
    triangle = _triangle(node, names)
    if triangle is not None:
        return triangle == ("below" if shown else "above")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Invert, ast.Not)):
        return below(node.operand, shown=not shown)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitOr, ast.BitAnd)):
        needs_all = isinstance(node.op, ast.BitAnd) == shown
        return (all if needs_all else any)(below(one, shown=shown) for one in (node.left, node.right))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(node, value, program, shown=shown, below=below)
    if isinstance(node, ast.Subscript):
        return below(node.value, shown=shown)
    if names.is_call(node, "torch.logical_not", ".logical_not"):
        subject = _subject(node)
        return subject is not None and below(subject, shown=not shown)
    kept = kept_by(node)
    return kept is not None and below(kept, shown=shown)


def _compared(
    node: ast.Compare, value: Value, program: Program, *, shown: bool, below: Callable[..., bool]
) -> bool:  # fmt: skip
    """`tril == 0` and `triu > 0`, or two ranges of positions."""
    op, right = node.ops[0], node.comparators[0]
    number = number_of(right, program.names(value.file))
    if number is not None:
        of_ones = _holds_of_ones(op, number)
        return of_ones is not None and below(node.left, shown=shown == of_ones)
    if not isinstance(op, _LOOSE if shown else _STRICT):
        return False
    sides = [[*origins(replace(value, node=one), program)] for one in (node.left, right)]
    return all(_is_range(side, program) for side in sides)


def _holds_of_ones(op: ast.cmpop, number: float) -> bool | None:
    """Whether a comparison of a matrix of 0 and 1 is true where it is 1, False where it is 0; None for other comparisons."""
    if number == 0:
        return {ast.Eq: False, ast.NotEq: True, ast.Gt: True}.get(type(op))
    if number == 1:
        return {ast.Eq: True, ast.NotEq: False, ast.Lt: False, ast.GtE: True}.get(type(op))
    return {ast.Lt: False, ast.Gt: True}.get(type(op)) if 0 < number < 1 else None


def _is_range(found: list[Value], program: Program) -> bool:
    for one in found:
        node = one.node
        while isinstance(node, ast.Subscript) or kept_by(node) is not None:
            node = node.value if isinstance(node, ast.Subscript) else kept_by(node) or node
        behind = [node] if not dotted_name(node) else [each.node for each in origins(replace(one, node=node), program)]
        if not behind or not all(program.names(one.file).is_call(each, "torch.arange") for each in behind):
            return False
    return bool(found)


def kept_by(node: ast.AST) -> ast.expr | None:
    """What a method that keeps each value in its place, or only moves it, is called on."""
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEP
    return node.func.value if is_method else None  # type: ignore[attr-defined]


def _subject(node: ast.AST) -> ast.expr | None:
    """What a function of torch, or a method, is applied to."""
    if not isinstance(node, ast.Call):
        return None
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    is_torch = isinstance(owner, ast.Name) and owner.id == "torch"
    return owner if owner is not None and not is_torch else next(iter(node.args), None)


def _triangle(node: ast.AST, names: Names) -> str | None:
    """Which part of a matrix is taken: what lies strictly "above" the diagonal, the rest "below", or an "other" one."""
    if not names.is_call(node, "torch.triu", "torch.tril", ".triu", ".tril") or not isinstance(node, ast.Call):
        return None
    is_upper = (names.qualified(node.func) or "").endswith("triu") or getattr(node.func, "attr", "") == "triu"
    given = next((one.value for one in node.keywords if one.arg == "diagonal"), None)
    rest = node.args[0 if _subject(node) is not next(iter(node.args), None) else 1 :]
    diagonal = number_of(given or (rest[0] if rest else ast.Constant(value=0)), names)
    if diagonal is None:
        return "other"
    if is_upper:
        return "above" if diagonal >= 1 else "other"
    return "below" if diagonal >= 0 else "other"
