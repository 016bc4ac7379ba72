"""Which of a function's expressions hold values that were taken out of torch, and which plain arrays meet them.

`values = hidden.numpy()` and all that is computed from it is followed to where it comes back to torch; the ends of the pieces,
`np.cumsum(lengths)`, stay NumPy's, since positions and sizes are no part of what is differentiated.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeGuard

from explainer.source.name import Function, Names
from explainer.source.tree import walk

OUT = frozenset(("numpy", "detach", "cpu", "clone", "contiguous"))
BACK = frozenset(("torch.from_numpy", "torch.tensor", "torch.as_tensor"))
_PLACES = frozenset(("shape", "ndim", "size", "dtype", "device"))  # of an array, without its values
_ADDS = frozenset(("append", "extend", "insert", "add", "appendleft"))
_NUMBERS = frozenset(
    ("len", "int", "float", "bool", "range", "isinstance", "print", "str", "repr", "type", "id", "hash")
)
_HANDS_ON = frozenset(
    ("list", "tuple", "sum", "max", "min", "sorted", "reversed", "zip", "enumerate", "abs", "map", "next", "iter")
)
_OF_SEVERAL = frozenset(  # which compute with all that they are given; the others with the first, by sizes and positions
    ("where", "maximum", "minimum", "power", "arctan2", "dot", "matmul", "outer", "add", "subtract", "multiply", "divide", "hypot",
     "kron", "logaddexp", "einsum", "heaviside", "clip", "linalg.solve")
)  # fmt: skip
Binding = tuple[ast.expr, ast.expr]


class ArrayFlow:
    """What follows from calls of `.numpy()`, in one function.

    Args:
        starts: The calls of `.numpy()` that are followed.
    """

    def __init__(self, function: Function, names: Names, starts: Iterable[ast.Call]) -> None:
        self._names = names
        self._function = function
        self._starts = frozenset(starts)
        self._held: set[str] = set()
        while any(self._follow(target, value) for target, value in self._bindings):
            pass

    def holds(self, node: ast.AST | None) -> bool:
        """Whether an expression is an array, or a list of arrays, that was computed from what left torch."""
        if isinstance(node, ast.Name):
            return node.id in self._held
        if isinstance(node, ast.Call):
            return self._is_held_call(node)
        if isinstance(node, ast.Attribute):
            return node.attr not in _PLACES and self.holds(node.value)
        if isinstance(node, (ast.Subscript, ast.Starred, ast.NamedExpr)):
            return self.holds(node.value)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            return self.holds(node.elt)
        if isinstance(node, ast.IfExp):
            return self.holds(node.body) or self.holds(node.orelse)
        return isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.List, ast.Tuple)) and any(
            self.holds(one) for one in ast.iter_child_nodes(node)
        )

    def returns(self) -> Iterator[ast.Call]:
        """The calls that bring what left torch back to it."""
        for one in walk(self._function):
            if self.is_back(one) and self.holds(one.args[0]):
                yield one

    def met(self) -> Iterator[ast.expr]:
        """The operands beside an array that left torch which did not: `window` of `values * window`; a container that is filled."""
        for node in walk(self._function):
            if isinstance(node, (ast.BinOp, ast.Compare)) and self.holds(node):
                sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.left, *node.comparators]
                yield from (one for one in sides if not self.holds(one))
            elif isinstance(node, ast.AugAssign) and self.holds(node.target) and not self.holds(node.value):
                yield node.value
            elif isinstance(node, ast.Call) and self.is_numpy(node.func) and self.holds(node):
                yield from (one for one in self.operands(node) if not self.holds(one))
        for target, value in self._bindings:
            if isinstance(target, ast.Name) and target.id in self._held and not self.holds(value):
                yield value

    def is_array_elsewhere(self, name: ast.Name) -> bool:
        """Whether a name that holds nothing of torch's is bound to what NumPy made."""
        return any(
            isinstance(target, ast.Name)
            and target.id == name.id
            and any(isinstance(one, ast.Call) and self.is_numpy(one.func) for one in walk(value))
            for target, value in self._bindings
        )

    def is_numpy(self, node: ast.expr) -> bool:
        """Whether an expression names something of NumPy's."""
        return (self._names.qualified(node) or "").startswith("numpy.")

    def is_back(self, node: ast.AST) -> TypeGuard[ast.Call]:
        """Whether a call makes a tensor of an array."""
        return isinstance(node, ast.Call) and bool(node.args) and self._names.qualified(node.func) in BACK

    def operands(self, call: ast.Call) -> Iterator[ast.expr]:
        """What a function of NumPy computes with, the elements of a list one by one: not its axis, nor where it cuts."""
        plain = (self._names.qualified(call.func) or "").removeprefix("numpy.")
        for one in call.args if plain in _OF_SEVERAL else call.args[:1]:
            yield from one.elts if isinstance(one, (ast.List, ast.Tuple)) else [one]

    def is_known(self, call: ast.Call) -> bool:
        """Whether a call of none of NumPy's can be given tensors where it is given arrays."""
        name = self._names.qualified(call.func) or ""
        return name in _NUMBERS | _HANDS_ON or name.startswith(("torch.", "math."))

    def _is_held_call(self, call: ast.Call) -> bool:
        if call in self._starts:
            return True
        name = self._names.qualified(call.func) or ""
        if self.is_back(call) or name in _NUMBERS or name.startswith("math."):
            return False
        if isinstance(call.func, ast.Attribute) and not name.startswith(("numpy.", "torch.")) and self.holds(call.func):
            return call.func.attr not in ("item", "tolist")
        return any(self.holds(one) for one in (*call.args, *(one.value for one in call.keywords)))

    @cached_property
    def _bindings(self) -> list[Binding]:
        """Each name, or place in a container, with what it is given."""
        found: list[Binding] = []
        for node in walk(self._function):
            if isinstance(node, ast.Assign):
                found += [pair for target in node.targets for pair in _pairs(target, node.value)]
            elif isinstance(node, (ast.AugAssign, ast.NamedExpr, ast.AnnAssign)) and node.value is not None:
                found += _pairs(node.target, node.value)
            elif isinstance(node, (ast.For, ast.comprehension)):
                found += self._walked(node.target, node.iter)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS:
                found += [(node.func.value, one) for one in node.args[-1:]]
        return found

    def _walked(self, target: ast.expr, iterated: ast.expr) -> list[Binding]:
        """`for i, row in enumerate(values)`: the row is the array's, the number is not."""
        name = self._names.qualified(iterated.func) if isinstance(iterated, ast.Call) else None
        if isinstance(iterated, ast.Call) and isinstance(target, ast.Tuple):
            if name == "enumerate" and iterated.args and len(target.elts) == 2:
                return self._walked(target.elts[1], iterated.args[0])
            if name == "zip" and len(target.elts) == len(iterated.args):
                pairs = zip(target.elts, iterated.args, strict=True)
                return [found for part, one in pairs for found in self._walked(part, one)]
        return _pairs(target, iterated)

    def _follow(self, target: ast.expr, value: ast.expr) -> bool:
        """Notes a name of the function's own that is given an array, or into which one is put; True where it was not known."""
        while isinstance(target, (ast.Subscript, ast.Starred)):
            target = target.value
        if not isinstance(target, ast.Name) or target.id in self._held or target.id not in self._own:
            return False
        if self.holds(value):
            self._held.add(target.id)
        return target.id in self._held

    @cached_property
    def _own(self) -> frozenset[str]:
        """The names that the function binds: what is put into another's list would keep its graph there."""
        return frozenset(
            one.id for one in walk(self._function) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)
        )


def _pairs(target: ast.expr, value: ast.expr) -> list[Binding]:
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(target.elts) == len(value.elts):
            both = zip(target.elts, value.elts, strict=True)
            return [pair for part, one in both for pair in _pairs(part, one)]
        return [pair for part in target.elts for pair in _pairs(part, value)]
    return [(target, value)]
