"""Tensors that a program makes of numbers alone: tables, masks, schedules. No module, no parameter, nothing with a graph."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

MAKERS = frozenset(
    {"zeros", "ones", "full", "empty", "arange", "linspace", "eye", "tensor", "rand", "randn", "randint", "randperm", "tril_indices"}
    | {"triu_indices", "as_tensor", "hann_window", "normal"}
)  # fmt: skip
_OF_ARRAYS = frozenset({"torch.from_numpy", "torch.logspace", "torch.hamming_window", "torch.blackman_window"})
_NO_TENSOR = frozenset({"item", "tolist", "numpy", "numel", "size", "dim"})
_DEPTH = 3


def is_maker(node: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether a call makes a tensor of numbers, on no device that it names."""
    called = program.names(file).qualified(node.func) or ""
    given = {one.arg for one in node.keywords}
    return called.startswith("torch.") and called.removeprefix("torch.") in MAKERS and not given & {"device", None}


def makes_constant(node: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether a call makes a tensor of numbers, or of an array."""
    return is_maker(node, file, program) or (program.names(file).qualified(node.func) or "") in _OF_ARRAYS


def constants_of(function: Function, file: SourceFile, program: Program, depth: int = _DEPTH) -> Constants:
    """What a function gives such tensors to: names, attributes, the buffers that it registers."""
    found = Constants(file, program, set(), depth)
    for node in sorted((one for one in walk(function) if isinstance(one, (ast.Assign, ast.Expr))), key=start_of):
        if isinstance(node, ast.Assign):
            found.add(node.targets[0], node.value)
        elif (
            isinstance(call := node.value, ast.Call) and dotted_name(call.func) == "self.register_buffer" and call.args
        ):
            found.known.add(f"self.{getattr(call.args[0], 'value', '')}")
    return found


@dataclass(frozen=True)
class Constants:
    """The names and attributes of a function that hold tensors which torch's own functions made of numbers."""

    file: SourceFile
    program: Program
    known: set[str]
    depth: int = _DEPTH

    def add(self, target: ast.expr, value: ast.expr) -> None:
        """Takes note of an assignment; `cos, sin = table(n)` too, where the function hands out a tensor for each."""
        if isinstance(target, ast.Tuple):
            is_alike = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
            is_made = isinstance(value, ast.Call) and self._is_made(value)
            for at, one in enumerate(target.elts):
                if is_made or (is_alike and self.is_tensor(value.elts[at])):  # type: ignore[attr-defined]
                    self.known.add(dotted_name(one) or "")
        elif self.is_tensor(value):
            self.known.add(dotted_name(target) or "")

    def is_tensor(self, node: ast.expr) -> bool:
        """Whether an expression is such a tensor."""
        if isinstance(node, ast.BinOp):
            return self.is_tensor(node.left) or self.is_tensor(node.right)
        if isinstance(node, (ast.UnaryOp, ast.Subscript)):
            return self.is_tensor(node.operand if isinstance(node, ast.UnaryOp) else node.value)
        if not isinstance(node, ast.Call):
            return (dotted_name(node) or "?") in self.known
        if is_maker(node, self.file, self.program):
            return True
        called = self.program.names(self.file).qualified(node.func) or ""
        if called.startswith("torch."):
            return self._is_computed(node, called)
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr not in _NO_TENSOR
        if is_method and isinstance(node.func, ast.Attribute) and self.is_tensor(node.func.value):
            return True
        return self._is_made(node)

    def _is_computed(self, call: ast.Call, called: str) -> bool:
        """Whether a function of torch computes it: of such tensors, on no device that it names."""
        if called.count(".") != 1 or not called.islower() or any(one.arg == "device" for one in call.keywords):
            return False
        inside = [one for given in call.args for one in walk(given) if isinstance(one, ast.expr)]
        return called in _OF_ARRAYS or any(self.is_tensor(one) for one in inside)

    def _is_made(self, call: ast.Call) -> bool:
        """Whether a function of the program returns such tensors, whatever it is given, and nothing else."""
        target = resolver_of(self.program).function_of(call, Value(call, self.file)) if self.depth else None
        if target is None:
            return False
        where, function = target
        inner = constants_of(function, where, self.program, self.depth - 1)
        returned = [one.value for one in walk(function) if isinstance(one, ast.Return) and one.value is not None]
        parts = [part for one in returned for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
        return bool(parts) and all(inner.is_tensor(one) for one in parts)
