"""What NumPy computes, written in torch: the names of functions, methods and options that mean the same in both."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import edit_of
from explainer.fix.graph.array_flow import OUT, ArrayFlow
from explainer.fix.graph.uncut import is_list
from explainer.fix.text.rewrite import spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import value_of

_SAME = frozenset(
    ("abs", "sqrt", "exp", "log", "log1p", "log2", "log10", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "square", "sign",
     "where", "sum", "mean", "prod", "stack", "matmul", "einsum", "outer", "cumsum", "cumprod", "diff", "roll", "amax", "amin",
     "arange", "zeros", "ones", "zeros_like", "ones_like", "squeeze", "linalg.norm", "linalg.inv", "linalg.det", "linalg.solve",
     "fft.fft", "fft.ifft", "fft.rfft", "fft.irfft", "hypot", "reciprocal", "deg2rad", "trapezoid", "tril", "triu", "sinc",
     "reshape", "swapaxes", "moveaxis", "broadcast_to", "vstack", "hstack", "column_stack", "tile", "full", "eye", "isnan",
     "isfinite", "nan_to_num", "logaddexp", "kron", "ravel", "floor", "ceil", "heaviside")
)  # fmt: skip
_OTHER = {
    "absolute": "abs", "fabs": "abs", "arctan": "atan", "arcsin": "asin", "arccos": "acos", "arctan2": "atan2", "arctanh": "atanh",
    "power": "pow", "concatenate": "cat", "clip": "clamp", "expand_dims": "unsqueeze", "max": "amax", "min": "amin", "dot": "matmul",
    "std": "std", "var": "var", "maximum": "maximum", "minimum": "minimum", "copy": "clone", "add": "add", "subtract": "sub",
    "multiply": "mul", "divide": "div", "negative": "neg",
}  # fmt: skip
_ELEMENTWISE = frozenset(
    ("abs", "sqrt", "exp", "log", "log1p", "log2", "log10", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "square", "sign",
     "atan", "asin", "acos", "atan2", "pow", "clamp", "maximum", "minimum", "where", "reciprocal")
)  # fmt: skip
_METHODS = {"max": "amax", "min": "amin", "copy": "clone", "ravel": "flatten", "dot": "matmul", "clip": "clamp"}
_PLAIN_METHODS = frozenset(("sum", "mean", "prod", "reshape", "squeeze", "cumsum", "flatten", "abs", "swapaxes"))
_OF_TENSORS = frozenset(("to", "float", "double", "T", "unsqueeze", "view", "mul", "item"))
_SPREADS = frozenset(("std", "var"))  # NumPy divides by n, torch by n - 1
_BOUNDS = {"maximum": "min", "minimum": "max"}
_MAKERS = frozenset(("asarray", "array", "ascontiguousarray"))
_VALUES = frozenset(("pi", "e", "inf", "newaxis"))
_FLOATS = frozenset(("numpy.float32", "float32"))
_OPERANDS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript)  # what a method can be called on without parentheses
_JOINS = frozenset(
    ("stack", "concatenate", "vstack", "hstack", "column_stack", "einsum", "zeros", "ones", "full", "broadcast_to")
)
_CREATORS = frozenset(("zeros", "ones", "full", "eye", "arange"))
_ADDED_TO = frozenset(("append", "extend", "insert"))
_WINDOWS = "numpy.lib.stride_tricks.sliding_window_view"


class NoForm(Exception):
    """Something that torch does not do by the same meaning."""


class Translation:
    """One function's own statements, read as arrays become tensors."""

    def __init__(self, function: Function, file: SourceFile, program: Program) -> None:
        self._function, self._file, self._program = function, file, program
        self._names = program.names(file)
        self._nodes = [one for one in walk(function) if isinstance(one, ast.expr)]

    def edits(self, failing: ast.stmt) -> Iterator[Edit]:
        """The edits of what leaves torch and comes back, on all its way; none where nothing does.

        It leaves by `.numpy()`; where nothing does so, by a function of NumPy that the `failing` statement gives a tensor.

        Raises:
            NoForm: for a call that has no form in torch.
        """
        calls = [one for one in self._nodes if isinstance(one, ast.Call)]
        out = self._that_come_back([one for one in calls if self._leaves(one)])
        given = [] if out else self._that_come_back(self._given(failing))
        out = out or given
        if not out:
            return
        flow = ArrayFlow(self._function, self._names, out)
        for one in out:
            yield from self.of_numpy(one.func) if one in given else self._kept(one)
        for one in flow.returns():
            yield from self._unwrapped(one)
        for one in calls:
            if one in out:
                continue
            if flow.is_numpy(one.func):
                yield from self.of_numpy(one.func) if flow.holds(one) else ()
            elif isinstance(one.func, ast.Attribute) and flow.holds(one.func.value):
                yield from self._method(one, one.func)
            elif flow.holds(one) and not flow.is_known(one):
                raise NoForm  # a function that is made for arrays, or of which nothing is known
        for met in flow.met():
            yield from self._beside(met, flow, self._device(out))

    def applied(self, statement: ast.stmt) -> Iterator[Edit]:
        """The edits of a statement that gives a tensor itself to functions of NumPy, element by element: `np.exp(logvar)`.

        Raises:
            NoForm: for a call that has no form in torch.
        """
        calls = [one for one in walk(statement) if isinstance(one, ast.Call)]
        plain = [(self._names.qualified(one.func) or "").removeprefix("numpy.") for one in calls if self._is_numpy(one)]
        is_taken = any(isinstance(one, ast.Attribute) and one.attr in OUT for one in walk(statement))
        if not plain or is_taken or not all(_OTHER.get(one, one) in _ELEMENTWISE for one in plain):
            return
        for one in calls:
            if self._is_numpy(one):
                if not one.args or is_list(Value(one.args[0], self._file), self._program):
                    raise NoForm
                yield from self.of_numpy(one.func)

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

    def _is_numpy(self, call: ast.Call) -> bool:
        return (self._names.qualified(call.func) or "").startswith("numpy.")

    def _that_come_back(self, out: list[ast.Call]) -> list[ast.Call]:
        return [one for one in out if any(ArrayFlow(self._function, self._names, [one]).returns())]

    def _given(self, failing: ast.stmt) -> list[ast.Call]:
        """The calls of NumPy's functions that the failing statement gives a tensor, and those that the same one is given."""
        calls = [one for one in self._nodes if isinstance(one, ast.Call) and self._is_given_tensor(one)]
        inside = set(walk(failing))
        given = {ast.dump(one.args[0]) for one in calls if one in inside}
        return [one for one in calls if one in inside or ast.dump(one.args[0]) in given]

    def _is_given_tensor(self, node: ast.Call) -> bool:
        """Whether a function of NumPy takes what is not NumPy's: `np.sin(phase)`."""
        if not self._is_numpy(node) or not node.args:
            return False
        first = node.args[0]
        is_plain = isinstance(first, (ast.Constant, ast.List, ast.Tuple)) or self._is_numpy_inside(first)
        return not is_plain and (self._names.qualified(node.func) or "").removeprefix("numpy.") not in _CREATORS

    def _leaves(self, call: ast.Call) -> bool:
        """`x.numpy()`, and `np.array(x.detach())`, which takes a tensor as it takes a list."""
        if isinstance(call.func, ast.Attribute) and call.func.attr == "numpy":
            return True
        given = call.args[0] if len(call.args) == 1 and not call.keywords else None
        is_array = (self._names.qualified(call.func) or "").removeprefix("numpy.") in _MAKERS and self._is_numpy(call)
        is_taken = (
            isinstance(given, ast.Call)
            and isinstance(given.func, ast.Attribute)
            and given.func.attr in ("detach", "cpu")
        )
        return is_array and is_taken

    def _kept(self, call: ast.Call) -> Iterator[Edit]:
        """`x.detach().cpu().numpy()` is `x`, `np.array(x.detach())` a copy of it."""
        if self._is_numpy(call):
            kept, is_copy = _taken(call.args[0]), (self._names.qualified(call.func) or "").endswith(".array")
            yield edit_of(self._file, call, self._file.segment(kept) + (".clone()" if is_copy else ""))
            return
        kept = _taken(call)
        yield Edit(file=self._file.path, start=self._file.span(kept)[1], end=self._file.span(call)[1], new="")

    def _device(self, out: list[ast.Call]) -> str | None:
        """Where what meets the tensors is to lie: nothing to say where they were on the CPU before; None where nothing names them."""
        moved = [
            one for one in out if any(isinstance(each, ast.Attribute) and each.attr == "cpu" for each in walk(one))
        ]
        kept = _taken(moved[0]) if moved else None
        if kept is None:
            return ""
        bound = {one.id for one in self._nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        return f", device={kept.id}.device" if isinstance(kept, ast.Name) and kept.id not in bound else None

    def _beside(self, met: ast.expr, flow: ArrayFlow, device: str | None) -> Iterator[Edit]:
        """An array that meets tensors becomes one: computed in torch where it is NumPy's here, taken as it is where it has a name."""
        made = [one for one in walk(met) if isinstance(one, ast.Call) and flow.is_numpy(one.func)]
        if not made and not self._is_array(met, flow):
            return
        if device is None:
            raise NoForm
        try:
            edits = [edit for one in made for edit in self._made(one, device)]
        except NoForm:
            edits = []
        start, end = self._file.span(met)
        yield from edits or (
            Edit(file=self._file.path, start=start, end=start, new=f"{spell(self._names, 'torch.as_tensor')}("),
            Edit(file=self._file.path, start=end, end=end, new=f"{device})"),
        )

    def _is_array(self, met: ast.expr, flow: ArrayFlow) -> bool:
        """Whether a name, or an attribute of the object itself, is bound to an array: `self.mean` of `table.mean(0).astype(kind)`."""
        if isinstance(met, ast.Name):
            return flow.is_array_elsewhere(met)
        name, owner = dotted_name(met), self._names.class_of(self._function)
        if name is None or owner is None or not name.startswith("self.") or name.count(".") > 1:
            return False
        made = [value_of(one, name) for one in self._names.assignments(name, owner)]
        calls = [one for value in made if value is not None for one in walk(value) if isinstance(one, ast.Call)]
        return any(flow.is_numpy(one.func) or getattr(one.func, "attr", "") == "astype" for one in calls)

    def _made(self, call: ast.Call, device: str) -> Iterator[Edit]:
        yield from self.of_numpy(call.func)
        if device and (self._names.qualified(call.func) or "").removeprefix("numpy.") in _CREATORS:
            end = self._file.span(call)[1] - 1
            yield Edit(file=self._file.path, start=end, end=end, new=device)

    def _unwrapped(self, call: ast.Call) -> Iterator[Edit]:
        """`torch.from_numpy(y)` is `y`; its parentheses stay, and go where they hold nothing that needs them. A list is stacked."""
        file, first = self._file, call.args[0]
        if isinstance(first, (ast.Tuple, ast.Constant)) or {one.arg for one in call.keywords} - {"dtype", "device"}:
            raise NoForm
        start, end = file.span(call)
        low, high = file.span(first)
        is_rows = is_list(Value(first, file), self._program)
        if is_rows:
            yield from self._stacked(first)
        is_simple = is_rows or isinstance(first, _OPERANDS)
        yield Edit(file=file.path, start=start, end=low, new="" if is_simple else "(")
        yield Edit(file=file.path, start=high, end=end, new="" if is_simple else ")")

    def _is_cast(self, above: ast.AST | None) -> bool:
        return isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and above.func.attr == "astype"

    def _called(self, call: ast.Call, name: str, plain: str) -> Iterator[Edit]:
        keywords = {one.arg: one.value for one in call.keywords}
        if name == _WINDOWS and len(call.args) == 2 and set(keywords) == {"axis"}:
            yield from self._windows(call, keywords["axis"])
        elif plain in _MAKERS and len(call.args) == 1 and all(self._is_float(one) for one in keywords.values()):
            yield from self._unwrapped(call)
        elif plain in _BOUNDS and len(call.args) == 2 and isinstance(call.args[1], (ast.Constant, ast.UnaryOp)):
            yield edit_of(self._file, call.func, spell(self._names, "torch.clamp"))
            low = self._file.span(call.args[1])[0]
            yield Edit(file=self._file.path, start=low, end=low, new=f"{_BOUNDS[plain]}=")
        elif plain == "sort" and set(keywords) <= {"axis"}:
            end = self._file.span(call)[1]
            yield edit_of(self._file, call.func, spell(self._names, "torch.sort"))
            yield Edit(file=self._file.path, start=end, end=end, new=".values")
        elif plain in ("split", "array_split") and len(call.args) == 2:
            yield from self._pieces(call, call.args[1])
        elif (plain in _SAME or plain in _OTHER) and "ddof" not in keywords:
            yield edit_of(self._file, call.func, spell(self._names, f"torch.{_OTHER.get(plain, plain)}"))
            if plain not in _JOINS and call.args and is_list(Value(call.args[0], self._file), self._program):
                yield from self._stacked(call.args[0])
            if plain in _SPREADS:
                yield self._population(call)
            if (dtype := keywords.get("dtype")) is not None:
                if not self._is_float(dtype):
                    raise NoForm
                yield edit_of(self._file, dtype, spell(self._names, "torch.float32"))
        else:
            raise NoForm

    def _windows(self, call: ast.Call, axis: ast.expr) -> Iterator[Edit]:
        """`sliding_window_view(a, size, axis=-1)` is `a.unfold(-1, size, 1)`."""
        file, (data, size) = self._file, call.args
        if any(self._is_numpy_inside(one) for one in (size, axis)):
            raise NoForm
        head, tail = ("", "") if isinstance(data, _OPERANDS) else ("(", ")")
        (start, end), (low, high) = file.span(call), file.span(data)
        yield Edit(file=file.path, start=start, end=low, new=head)
        yield Edit(
            file=file.path, start=high, end=end, new=f"{tail}.unfold({file.segment(axis)}, {file.segment(size)}, 1)"
        )

    def _pieces(self, call: ast.Call, ends: ast.expr) -> Iterator[Edit]:
        """`np.split(a, ends)` is `torch.tensor_split(a, tuple(ends))`: it takes no array of ends."""
        yield edit_of(self._file, call.func, spell(self._names, "torch.tensor_split"))
        if not isinstance(ends, (ast.Constant, ast.List, ast.Tuple)):
            start, end = self._file.span(ends)
            yield Edit(file=self._file.path, start=start, end=start, new="tuple(")
            yield Edit(file=self._file.path, start=end, end=end, new=")")

    def _stacked(self, rows: ast.expr) -> Iterator[Edit]:
        """A list of arrays where torch wants one tensor: `torch.stack(rows)`."""
        if isinstance(rows, ast.List) and any(isinstance(one, (ast.Constant, ast.List)) for one in rows.elts):
            raise NoForm
        start, end = self._file.span(rows)
        yield Edit(file=self._file.path, start=start, end=start, new=f"{spell(self._names, 'torch.stack')}(")
        yield Edit(file=self._file.path, start=end, end=end, new=")")

    def _is_float(self, dtype: ast.expr) -> bool:
        return (self._names.qualified(dtype) or getattr(dtype, "value", None)) in _FLOATS

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
            and (self._is_numpy(one) or (isinstance(one.func, ast.Attribute) and one.func.attr == "numpy"))
            for one in walk(node)
        )

    def _method(self, call: ast.Call, func: ast.Attribute) -> Iterator[Edit]:
        """A method of an array that torch names otherwise, or not at all."""
        file, name = self._file, func.attr
        if name == "astype":
            if len(call.args) != 1 or not self._is_float(call.args[0]):
                raise NoForm
            yield Edit(file=file.path, start=file.span(func.value)[1], end=file.span(call)[1], new="")
        elif name in _METHODS:
            end = file.span(func)[1]
            yield Edit(file=file.path, start=end - len(name), end=end, new=_METHODS[name])
        elif name in _SPREADS:
            yield self._population(call)
        elif name not in _PLAIN_METHODS | OUT | _OF_TENSORS | _ADDED_TO:
            raise NoForm


def _taken(call: ast.expr) -> ast.expr:
    """What is taken out of torch by `.detach().cpu().numpy()`."""
    kept: ast.expr = call
    while isinstance(kept, ast.Call) and isinstance(kept.func, ast.Attribute) and kept.func.attr in OUT:
        kept = kept.func.value
    return kept
