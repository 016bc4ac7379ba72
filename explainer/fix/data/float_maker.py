"""What makes whole numbers of labels, and the edit that makes floats of them: `float(name in tags)` for `int(name in tags)`.

A list is followed through names, comprehensions, `append` and the program's own functions to what makes its items, an array or a
tensor to the word that says its dtype. A single number is no row of labels, but the index of a class.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from explainer.fix.codemod import edit_of
from explainer.fix.text.rewrite import add_argument, put_method, spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, Names
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, scope_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 8
_LISTS = ("torch.tensor", "torch.as_tensor", "numpy.array", "numpy.asarray")
_FILLED = tuple(
    f"{library}.{name}"
    for library in ("torch", "numpy")
    for name in ("zeros", "ones", "full", "eye", "empty", "zeros_like", "ones_like", "full_like")
)
_JOINS = ("torch.stack", "torch.cat", "torch.vstack")
_INTEGERS = frozenset(
    {"int", "bool", "int64", "int32", "int8", "uint8", "torch.long", "torch.int64", "torch.int", "torch.int32", "torch.uint8"}
    | {"torch.bool", "numpy.int64", "numpy.int32", "numpy.int8", "numpy.uint8", "numpy.int_", "numpy.bool_"}
)  # fmt: skip
_CASTS = frozenset({"long", "int"})
_WHOLE = frozenset({"sum", "amax", "clamp", "squeeze", "flatten", "view"})  # methods that leave whole numbers whole


@dataclass(frozen=True, eq=False)
class Made:
    """An expression that makes whole numbers, and its edit; `function` is that of the program which returns it."""

    file: SourceFile
    node: ast.expr
    edit: Edit
    function: Function | None = None


@dataclass(eq=False)
class FloatMaker:
    """Finds the edits for labels of a program, and remembers which of its functions make them."""

    program: Program
    _calls: dict[Function, set[ast.Call]] = field(default_factory=dict)

    def edits(self, value: Value, depth: int = 0) -> list[Made]:
        """The edits for a row, or rows, of labels; none where it may hold floats, or what it holds does not show."""
        node = value.node
        if depth > _DEPTH or value.pick is not None or value.is_element:
            return []
        if isinstance(node, ast.Name):
            return self._of_name(value, depth)
        if isinstance(node, ast.ListComp):
            return self._of_item(replace(value, node=node.elt), depth)
        if isinstance(node, ast.BinOp):
            base = node.left if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List) else None
            return self.edits(replace(value, node=base), depth) if base is not None else []
        if isinstance(node, ast.List):
            return self._of_items(node.elts, value, depth)
        return self._of_call(node, value, depth) if isinstance(node, ast.Call) else []

    def shared(self) -> set[Function]:
        """The functions that made labels, and that something else of the program names as well."""
        return {function for function, calls in self._calls.items() if self._mentions(function.name) > len(calls)}

    def _mentions(self, name: str) -> int:
        nodes = (node for file in self.program.parsed() for node in file.walk())
        return sum(
            (node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else "") == name
            for node in nodes
        )

    def _of_name(self, value: Value, depth: int) -> list[Made]:
        """What the one binding of a name makes, or what an empty list is filled with."""
        node, file = value.node, value.file
        name = node.id if isinstance(node, ast.Name) else ""
        bounds = [one for one in bounds_of(scope_of(node, file)) if one.name == name]
        made = [one for one in bounds if not one.fills]
        if len(made) != 1 or made[0].pick is not None or made[0].is_element:
            return []
        if isinstance(made[0].node, ast.List) and not made[0].node.elts:
            return self._of_items([one.node for one in bounds if one.fills], value, depth)
        return self.edits(replace(value, node=made[0].node), depth + 1)

    def _of_items(self, items: Iterable[ast.expr], value: Value, depth: int) -> list[Made]:
        """Every item of a list, or none of them."""
        found = [self._of_item(replace(value, node=one), depth) for one in items]
        return [one for each in found for one in each] if all(found) else []

    def _of_item(self, value: Value, depth: int) -> list[Made]:
        """`int(x)`, `1 if x else 0`, `x in tags` and `0` in a list, each as a float; else a list in it."""
        node, file = value.node, value.file
        new = None
        if isinstance(node, ast.Call) and _is_of(node, "int") and len(node.args) == 1:
            return [Made(file, node, edit_of(file, node.func, "float"))]
        if isinstance(node, ast.IfExp) and _is_whole(node.body) and _is_whole(node.orelse):
            new = f"{file.segment(node.body)}.0 if {file.segment(node.test)} else {file.segment(node.orelse)}.0"
        elif isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            new = f"float({file.segment(node)})"
        elif _is_whole(node):
            new = f"{file.segment(node)}.0"
        if new is not None:
            return [Made(file, node, edit_of(file, node, new))]
        returned = self._returned(node, value, depth, is_item=True) if isinstance(node, ast.Call) else None
        return returned if returned is not None else self.edits(value, depth + 1)

    def _of_call(self, node: ast.Call, value: Value, depth: int) -> list[Made]:
        file, names = value.file, self.program.names(value.file)
        returned = self._returned(node, value, depth)
        if returned is not None:
            return returned
        if names.is_call(node, "torch.LongTensor"):
            return [Made(file, node, edit_of(file, node.func, spell(names, "torch.FloatTensor")))]
        if names.is_call(node, *_LISTS, *_FILLED):
            return self._of_maker(node, value, depth)
        if names.is_call(node, *_JOINS) or _is_one_hot(node, names):
            return [Made(file, node, put_method(file, node, ".float()"))]
        if _is_of(node, "list") and len(node.args) == 1:
            mapped = _edit_of_map(node.args[0], file)
            return [Made(file, node, mapped)] if mapped else self.edits(replace(value, node=node.args[0]), depth + 1)
        return self._of_method(node, value, depth) if isinstance(node.func, ast.Attribute) else []

    def _of_method(self, node: ast.Call, value: Value, depth: int) -> list[Made]:
        """`x.long()`, `x.to(torch.long)` and `x.astype(int)` with a word for floats; `x.tolist()` is what `x` is."""
        file, names = value.file, self.program.names(value.file)
        assert isinstance(node.func, ast.Attribute)
        called, of = node.func.attr, node.func.value
        first = node.args[0] if len(node.args) == 1 and not node.keywords else None
        if called in _CASTS and not node.args:
            return [Made(file, node, edit_of(file, node, f"{file.segment(of)}.float()"))]
        if called == "to" and first is not None and self._is_integer(first, file):
            return [Made(file, node, edit_of(file, first, spell(names, "torch.float")))]
        if called == "astype" and first is not None and self._is_integer(first, file):
            return [Made(file, node, edit_of(file, first, '"float32"'))]
        return self.edits(replace(value, node=of), depth + 1) if called == "tolist" else []

    def _of_maker(self, node: ast.Call, value: Value, depth: int) -> list[Made]:
        """`torch.tensor(rows)`, `torch.zeros(n, dtype=torch.long)` and `np.zeros(n, int)` with a dtype for floats."""
        file, names = value.file, self.program.names(value.file)
        called = names.qualified(node.func) or ""
        is_torch = called.startswith("torch.")
        floats = spell(names, "torch.float" if is_torch else "numpy.float32")
        stated = next((one.value for one in node.keywords if one.arg == "dtype"), None)
        if stated is None and called in ("numpy.zeros", "numpy.ones", "numpy.array", "numpy.asarray") and node.args[1:]:
            stated = node.args[1]
        if stated is not None:
            return [Made(file, node, edit_of(file, stated, floats))] if self._is_integer(stated, file) else []
        if called in _FILLED or not node.args:
            return []
        if not is_torch:
            return self.edits(replace(value, node=node.args[0]), depth + 1)
        has_floats = any(isinstance(one, ast.Constant) and isinstance(one.value, float) for one in walk(node))
        made_float = has_floats or any(isinstance(one, ast.Call) and _is_of(one, "float") for one in walk(node))
        return [] if made_float else [Made(file, node, add_argument(file, node, f"dtype={floats}"))]

    def _is_integer(self, node: ast.expr, file: SourceFile) -> bool:
        name = node.value if isinstance(node, ast.Constant) else self.program.names(file).qualified(node)
        return name in _INTEGERS

    def _returned(self, node: ast.Call, value: Value, depth: int, *, is_item: bool = False) -> list[Made] | None:
        """The edits of what a function of the program returns, all of it; None for another call."""
        resolver = resolver_of(self.program)
        target = resolver.function_of(node, value)
        if target is None:
            return None
        returns = resolver.returns_of(target, node, value)
        read = self._of_item if is_item else self.edits
        found = [read(one, depth + 1) for one in returns]
        if not found or not all(found):
            return []
        self._calls.setdefault(target[1], set()).add(node)
        return [replace(one, function=one.function or target[1]) for each in found for one in each]


def _is_of(node: ast.Call, name: str) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == name


def _is_one_hot(node: ast.expr, names: Names) -> bool:
    """`F.one_hot(ids, 5)`, also summed or clamped."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if names.is_call(node, "torch.nn.functional.one_hot"):
            return True
        if node.func.attr not in _WHOLE:
            return False
        node = node.func.value
    return False


def _edit_of_map(value: ast.expr, file: SourceFile) -> Edit | None:
    """`list(map(int, xs))` as `list(map(float, xs))`."""
    is_map = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "map"
    cast = value.args[0] if is_map and isinstance(value, ast.Call) and value.args else None
    return edit_of(file, cast, "float") if isinstance(cast, ast.Name) and cast.id == "int" else None


def _is_whole(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int
