"""What a loss with one value for each element is made of: the calls on the way to it, and what multiplies its elements."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from explainer.source.loss.loss import Loss, loss_at
from explainer.source.loss.weighting import COUNT, ONE, is_length, is_scalar, reduced_by, results_of, total_of
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 12
# Methods that keep the elements of a loss, or reduce it in part.
SAME = frozenset(
    {"squeeze", "unsqueeze", "view", "reshape", "flatten", "float", "double", "to", "clamp", "sum", "mean", "neg", "detach", "cpu"}
    | {"contiguous", "clone", "numpy"}
)  # fmt: skip
_PRODUCTS = frozenset({"mul", "multiply", "mul_", "div", "divide", "div_"})
_MASKS = frozenset({"where", "masked_fill", "masked_fill_"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a loss is made of. A call comes with whether weights multiply its result; a weight is what it adds up to, if known."""

    calls: tuple[tuple[Value, bool], ...]
    weights: tuple[str | None, ...]


def made_of(value: Value, program: Program) -> Made:
    """The calls and weights of a loss, outermost first."""
    walk = _Walk(program)
    walk.go(value, weighted=False, depth=0)
    return Made(calls=tuple(walk.calls), weights=tuple(walk.weights))


class _Walk:
    """Goes from a loss to what computes it, as far as its elements stay losses: not into what is compared or squared."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.calls: list[tuple[Value, bool]] = []
        self.weights: list[str | None] = []

    def go(self, value: Value, *, weighted: bool, depth: int) -> None:
        """Read one expression and what is below it."""
        node = value.node
        if depth > _DEPTH:
            return
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
            is_quotient = isinstance(node.op, ast.Div)
            self._product((node.left, node.right), value, weighted=weighted, depth=depth, is_quotient=is_quotient)
        elif isinstance(node, ast.Call):
            self._call(node, value, weighted=weighted, depth=depth)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            self._name(value, weighted=weighted, depth=depth)
        else:
            for one in _below(value):
                self.go(one, weighted=weighted, depth=depth + 1)

    def _name(self, value: Value, *, weighted: bool, depth: int) -> None:
        """What a name is bound to; `loss *= w` weighs it."""
        bound = list(resolver_of(self._program).behind(value))
        heavy = [one for one in bound if _scales(one) and not is_scalar(one, self._program)]
        for one in heavy:
            is_product = isinstance(one.statement, ast.AugAssign) and isinstance(one.statement.op, ast.Mult)
            self.weights.append(total_of(one, self._program) if is_product else None)
        for one in bound:
            if not _scales(one):
                picked = replace(one, pick=value.pick) if one.pick is None else one
                self.go(picked, weighted=weighted or bool(heavy), depth=depth + 1)

    def _product(
        self, sides: tuple[ast.expr, ast.expr], value: Value, *, weighted: bool, depth: int, is_quotient: bool
    ) -> None:
        """A loss and what weighs it; a number scales all of it alike, a square is no weight."""
        program = self._program
        values = [replace(value, node=one, pick=None) for one in sides]
        numbers = [is_scalar(one, program) for one in values]
        if ast.unparse(sides[0]) == ast.unparse(sides[1]):
            return
        totals = [None if is_quotient else total_of(one, program) for one in values]
        total = _divided(values[0], values[1], program) if is_quotient else None
        if total is not None:
            assert isinstance(sides[0], ast.BinOp)
            values, numbers = [replace(value, node=one) for one in (sides[0].left, sides[0].right)], [False, False]
            totals = [None, None]
        if not any(numbers):
            known = [total, *totals] if None in totals else []
            self.weights.append(next((one for one in known if one is not None), None))
        elif is_quotient and is_length(sides[1]):
            self.weights.append(None)  # divided by their number once: a mean would divide again
        for side, is_number, own in zip(values, numbers, totals, strict=True):
            if not is_number and own is None:
                self.go(side, weighted=weighted or not any(numbers), depth=depth + 1)

    def _call(self, node: ast.Call, value: Value, *, weighted: bool, depth: int) -> None:
        called = self._program.names(value.file).qualified(node.func) or ""
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        last = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        is_torch = called.startswith("torch.")
        loss = loss_at(node, value.file, self._program)
        if loss is not None:
            self.calls.append((value, weighted))
            self.weights.extend(_given(loss, value, self._program))
        elif last in _PRODUCTS and node.args and owner is not None:
            sides = (node.args[0] if is_torch else owner, node.args[-1])
            self._product(sides, value, weighted=weighted, depth=depth, is_quotient=last.startswith("div"))
        elif last in _MASKS:
            self.weights.append(None)  # what is masked is counted by a mean all the same
        else:
            results = results_of(value, self._program) if not is_torch else []
            if results:
                self.calls.append((value, weighted))
            elif last in SAME and owner is not None:
                results = [replace(value, node=node.args[0] if is_torch and node.args else owner)]
            for one in results:
                self.go(one, weighted=weighted, depth=depth + 1)


def _below(value: Value) -> Iterator[Value]:
    """The expressions that a sum, a branch, or an entry of a container stands for."""
    node = value.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from (replace(value, node=one) for one in (node.left, node.right))
    elif isinstance(node, ast.UnaryOp):
        yield replace(value, node=node.operand)
    elif isinstance(node, ast.IfExp):
        yield from (replace(value, node=one) for one in (node.body, node.orelse))
    elif isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        yield replace(value, node=node.value, pick=key if isinstance(key, (int, str)) else value.pick)
    elif isinstance(node, (ast.Tuple, ast.List)) and isinstance(value.pick, int) and value.pick < len(node.elts):
        yield replace(value, node=node.elts[value.pick], pick=None)
    elif isinstance(node, ast.Dict) and isinstance(value.pick, str):
        for given, one in zip(node.keys, node.values, strict=True):
            if isinstance(given, ast.Constant) and given.value == value.pick:
                yield replace(value, node=one, pick=None)


def _scales(value: Value) -> bool:
    """Whether a value is what `loss *= w` or `loss /= n` applies."""
    return isinstance(value.statement, ast.AugAssign) and isinstance(value.statement.op, (ast.Mult, ast.Div))


def _divided(above: Value, below: Value, program: Program) -> str | None:
    """What the weights of `(loss * w) / w.sum()` add up to."""
    node = above.node
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    for reduction, total in (("sum", ONE), ("mean", COUNT)):
        weights = reduced_by(reduction, below, program)
        if weights is not None and ast.unparse(weights) in (ast.unparse(node.left), ast.unparse(node.right)):
            return total
    return None


def _given(loss: Loss, value: Value, program: Program) -> Iterator[str | None]:
    """Weights and ignored labels, which torch's own mean divides by and the mean of the elements does not."""
    weight = loss.options.get("weight")
    if weight is not None and not (isinstance(weight, ast.Constant) and weight.value is None):
        yield None if loss.takes_classes else total_of(replace(value, node=weight), program)
    if loss.takes_classes and ("ignore_index" in loss.options or any(program.once(_ignored))):
        yield None


def _ignored(program: Program) -> Iterator[ast.AST]:
    """The labels that torch's losses leave out by themselves: -100, wherever the program writes it."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.UnaryOp) and number_of(node, program.names(file)) == -100:
                yield node
