"""What NumPy computes, written in torch: the names of functions, methods and options that mean the same in both."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import edit_of
from explainer.fix.rewrite import spell
from explainer.fix.uncut import is_list
from explainer.model.patch import Edit
from explainer.source.binding import Value
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk

_SAME = frozenset(
    ("abs", "sqrt", "exp", "log", "log1p", "log2", "log10", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "square", "sign",
     "where", "sum", "mean", "prod", "stack", "matmul", "einsum", "outer", "cumsum", "cumprod", "diff", "roll", "amax", "amin",
     "arange", "zeros", "ones", "zeros_like", "ones_like", "squeeze", "linalg.norm", "linalg.inv", "linalg.det", "linalg.solve",
     "fft.fft", "fft.ifft", "fft.rfft", "fft.irfft", "hypot", "reciprocal", "deg2rad", "trapezoid", "tril", "triu", "sinc")
)  # fmt: skip
_OTHER = {
    "absolute": "abs", "fabs": "abs", "arctan": "atan", "arcsin": "asin", "arccos": "acos", "arctan2": "atan2", "arctanh": "atanh",
    "power": "pow", "concatenate": "cat", "clip": "clamp", "expand_dims": "unsqueeze", "max": "amax", "min": "amin", "dot": "matmul",
    "std": "std", "var": "var", "maximum": "maximum", "minimum": "minimum",
}  # fmt: skip
_ELEMENTWISE = frozenset(
    ("abs", "sqrt", "exp", "log", "log1p", "log2", "log10", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "square", "sign",
     "atan", "asin", "acos", "atan2", "pow", "clamp", "maximum", "minimum", "where", "reciprocal")
)  # fmt: skip
_METHODS = {"max": "amax", "min": "amin", "copy": "clone", "ravel": "flatten", "dot": "matmul", "clip": "clamp"}
_PLAIN_METHODS = frozenset(("sum", "mean", "prod", "reshape", "squeeze", "cumsum", "flatten", "abs"))
_SPREADS = frozenset(("std", "var"))  # NumPy divides by n, torch by n - 1
_BOUNDS = {"maximum": "min", "minimum": "max"}
_OUT = frozenset(("numpy", "detach", "cpu", "clone", "contiguous"))
_BACK = frozenset(("torch.from_numpy", "torch.tensor", "torch.as_tensor"))
_VALUES = frozenset(("pi", "e", "inf", "newaxis"))
_FLOATS = frozenset(("numpy.float32", "float32"))
_OPERANDS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript)  # what a method can be called on without parentheses
_WINDOWS = "numpy.lib.stride_tricks.sliding_window_view"


class NoForm(Exception):
    """Something that torch does not do by the same meaning."""


class Translation:
    """One function's own statements, read as arrays become tensors."""

    def __init__(self, function: Function, file: SourceFile, program: Program) -> None:
        self._function, self._file, self._program = function, file, program
        self._names = program.names(file)
        self._nodes = [one for one in walk(function) if isinstance(one, ast.expr)]

    def edits(self) -> Iterator[Edit]:
        """The edits of all that is NumPy's; none where nothing leaves torch or nothing comes back.

        Raises:
            NoForm: for a call that has no form in torch.
        """
        calls = [one for one in self._nodes if isinstance(one, ast.Call)]
        out = [one for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == "numpy"]
        back = [one for one in calls if self._names.qualified(one.func) in _BACK and one.args]
        if not out or not back:
            return
        for one in out:
            yield from self._kept(one)
        for one in back:
            yield from self._unwrapped(one)
        for node in self._nodes:
            yield from self.of_numpy(node)
        arrays = self._arrays()
        for one in calls:
            if isinstance(one.func, ast.Attribute) and (
                arrays & {each.id for each in walk(one.func) if isinstance(each, ast.Name)}
                or self._is_numpy_inside(one.func)
            ):
                yield from self._method(one, one.func)

    def applied(self, statement: ast.stmt) -> Iterator[Edit]:
        """The edits of a statement that gives a tensor itself to functions of NumPy, element by element: `np.exp(logvar)`.

        Raises:
            NoForm: for a call that has no form in torch.
        """
        calls = [one for one in walk(statement) if isinstance(one, ast.Call)]
        plain = [(self._names.qualified(one.func) or "").removeprefix("numpy.") for one in calls if self._is_numpy(one)]
        is_taken = any(isinstance(one, ast.Attribute) and one.attr in _OUT for one in walk(statement))
        if not plain or is_taken or not all(_OTHER.get(one, one) in _ELEMENTWISE for one in plain):
            return
        for one in calls:
            if self._is_numpy(one):
                if not one.args or is_list(Value(one.args[0], self._file), self._program):
                    raise NoForm
                yield from self.of_numpy(one.func)

    def _is_numpy(self, call: ast.Call) -> bool:
        return (self._names.qualified(call.func) or "").startswith("numpy.")

    def _kept(self, call: ast.Call) -> Iterator[Edit]:
        """`x.detach().cpu().numpy()` is `x`."""
        kept: ast.expr = call.func.value if isinstance(call.func, ast.Attribute) else call
        while isinstance(kept, ast.Call) and isinstance(kept.func, ast.Attribute) and kept.func.attr in _OUT:
            kept = kept.func.value
        yield Edit(file=self._file.path, start=self._file.span(kept)[1], end=self._file.span(call)[1], new="")

    def _unwrapped(self, call: ast.Call) -> Iterator[Edit]:
        """`torch.from_numpy(y)` is `y`; its parentheses stay, and go where they hold nothing that needs them."""
        file, first = self._file, call.args[0]
        if isinstance(first, (ast.List, ast.Tuple, ast.ListComp, ast.Constant)) or {
            one.arg for one in call.keywords
        } - {"dtype", "device"}:
            raise NoForm
        start, end = file.span(call)
        low, high = file.span(first)
        is_simple = isinstance(first, _OPERANDS)
        yield Edit(file=file.path, start=start, end=low, new="" if is_simple else "(")
        yield Edit(file=file.path, start=high, end=end, new="" if is_simple else ")")

    def of_numpy(self, node: ast.expr) -> Iterator[Edit]:
        """A name of NumPy: a function in a call, or a number."""
        name = self._names.qualified(node) or ""
        above = self._file.parents.get(node)
        if not name.startswith("numpy.") or isinstance(above, ast.Attribute):
            return
        plain = name.removeprefix("numpy.")
        if isinstance(above, ast.Call) and above.func is node:
            yield from self._called(above, name, plain)
        elif plain not in _VALUES and not (name in _FLOATS and self._is_cast(above)):
            raise NoForm

    def _is_cast(self, above: ast.AST | None) -> bool:
        return isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and above.func.attr == "astype"

    def _called(self, call: ast.Call, name: str, plain: str) -> Iterator[Edit]:
        file = self._file
        keywords = {one.arg: one.value for one in call.keywords}
        if name == _WINDOWS and len(call.args) == 2 and set(keywords) == {"axis"}:
            data, size = call.args
            if any(self._is_numpy_inside(one) for one in (size, keywords["axis"])):
                raise NoForm
            head, tail = ("", "") if isinstance(data, _OPERANDS) else ("(", ")")
            (start, end), (low, high) = file.span(call), file.span(data)
            text = f"{tail}.unfold({file.segment(keywords['axis'])}, {file.segment(size)}, 1)"
            yield Edit(file=file.path, start=start, end=low, new=head)
            yield Edit(file=file.path, start=high, end=end, new=text)
        elif plain in ("asarray", "array") and len(call.args) == 1 and not keywords:
            yield from self._unwrapped(call)
        elif plain in _BOUNDS and len(call.args) == 2 and isinstance(call.args[1], (ast.Constant, ast.UnaryOp)):
            yield edit_of(file, call.func, spell(self._names, "torch.clamp"))
            low = file.span(call.args[1])[0]
            yield Edit(file=file.path, start=low, end=low, new=f"{_BOUNDS[plain]}=")
        elif (plain in _SAME or plain in _OTHER) and "dtype" not in keywords and "ddof" not in keywords:
            yield edit_of(file, call.func, spell(self._names, f"torch.{_OTHER.get(plain, plain)}"))
            if plain in _SPREADS:
                yield self._population(call)
        else:
            raise NoForm

    def _population(self, call: ast.Call) -> Edit:
        at = self._file.span(call)[1] - 1
        return Edit(
            file=self._file.path,
            start=at,
            end=at,
            new=", correction=0" if call.args or call.keywords else "correction=0",
        )

    def _is_numpy_inside(self, node: ast.AST) -> bool:
        return any(
            isinstance(one, ast.Call)
            and (
                (self._names.qualified(one.func) or "").startswith("numpy.")
                or (isinstance(one.func, ast.Attribute) and one.func.attr == "numpy")
            )
            for one in walk(node)
        )

    def _arrays(self) -> set[str]:
        """The function's names that hold arrays."""
        found: set[str] = set()
        assigned = [
            one
            for one in walk(self._function)
            if isinstance(one, (ast.Assign, ast.AugAssign)) and one.value is not None
        ]
        for _ in range(len(assigned)):
            before = len(found)
            for one in assigned:
                if self._is_numpy_inside(one.value) or found & {
                    each.id for each in walk(one.value) if isinstance(each, ast.Name)
                }:
                    targets = one.targets if isinstance(one, ast.Assign) else [one.target]
                    found |= {
                        each.id
                        for target in targets
                        for each in walk(target)
                        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
                    }
            if len(found) == before:
                break
        return found

    def _method(self, call: ast.Call, func: ast.Attribute) -> Iterator[Edit]:
        """A method of an array that torch names otherwise, or not at all."""
        file, name = self._file, func.attr
        if self._names.qualified(func) and (self._names.qualified(func) or "").startswith(("numpy.", "torch.")):
            return
        if name == "astype":
            if (
                len(call.args) != 1
                or (self._names.qualified(call.args[0]) or getattr(call.args[0], "value", None)) not in _FLOATS
            ):
                raise NoForm
            yield Edit(file=file.path, start=file.span(func.value)[1], end=file.span(call)[1], new="")
        elif name in _METHODS:
            end = file.span(func)[1]
            yield Edit(file=file.path, start=end - len(name), end=end, new=_METHODS[name])
        elif name in _SPREADS:
            yield self._population(call)
        elif (
            name not in _PLAIN_METHODS
            and name not in _OUT
            and name not in ("to", "float", "double", "T", "unsqueeze", "view", "mul", "item")
        ):
            raise NoForm
