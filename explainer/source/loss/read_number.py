"""What a number is made of: followed through names, lists, tables and functions to the calls that read it of tensors.

Only what is scaled, added up and kept on the way: a number that is subtracted, divided by, or kept from an earlier step is not.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import (
    Bound,
    Value,
    all_parameters,
    bind_call,
    bounds_of,
    find_calls,
    reaching,
    scope_of,
    walk_scope,
)
from explainer.source.value.callee import callees_of

_DEPTH, _NAMES = 16, 100
_READS = ("item", "tolist")
_ON_THE_WAY = ("cpu", "detach", "double", "float")
_SUMS = ("sum", "math.fsum", "numpy.sum", "numpy.mean", "statistics.mean", "statistics.fmean")
_KEEPS = ("list", "tuple", "sorted", "reversed")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_IS_TERM, _IS_CONSTANT = True, False

Lines = Collection[tuple[str, int]]
"""Lines by path and number."""

_Made = bool | None
"""What a number is made of: readings and constants, constants alone, or (None) something else."""


@dataclass(eq=False)
class Term:
    """A part of a sum, and what was met on the way to the readings that it is made of: names, sums, calls of the program.

    `fills` are the names in `levels.append(...)`; `bounds` what binds the names; `tables` are the names of tables with the key
    that is looked up, None for all; `is_whole` says that one call reads all entries. `is_clear` says that no object is on the way, and no call gives a function there something else.
    """

    part: ast.expr
    file: SourceFile
    readings: dict[ast.Call, SourceFile] = field(default_factory=dict)
    names: dict[ast.expr, SourceFile] = field(default_factory=dict)
    lists: set[ast.expr] = field(default_factory=set)
    fills: set[ast.expr] = field(default_factory=set)
    bounds: set[Bound] = field(default_factory=set)
    sums: dict[ast.Call, SourceFile] = field(default_factory=dict)
    calls: dict[ast.Call, str] = field(default_factory=dict)
    tables: dict[ast.expr, str | None] = field(default_factory=dict)
    is_whole: bool = False
    is_clear: bool = True


def tensor_of(read: ast.AST) -> ast.expr | None:
    """The tensor whose value an expression reads: `x` of `x.item()`, `float(x)` and `x.cpu().item()`."""
    if not isinstance(read, ast.Call):
        return None
    if isinstance(read.func, ast.Name) and read.func.id == "float" and len(read.args) == 1:
        tensor = read.args[0]
    elif isinstance(read.func, ast.Attribute) and read.func.attr in _READS and not read.args:
        tensor = read.func.value
    else:
        return None
    while isinstance(tensor, ast.Call) and isinstance(tensor.func, ast.Attribute) and tensor.func.attr in _ON_THE_WAY:
        tensor = tensor.func.value
    return tensor


class Walk:
    """Goes from a number to what it is made of, and notes in a term what it passes."""

    def __init__(self, program: Program, lines: Lines, term: Term) -> None:
        self._program = program
        self._lines = lines
        self._open: set[Bound] = set()
        self.term = term

    def number(self, node: ast.expr, file: SourceFile, depth: int) -> _Made:
        """What a number is made of."""
        made: _Made = None
        if depth > _DEPTH:
            return None
        if self._is_reading(node, file):
            made = _IS_TERM
        elif isinstance(node, ast.Constant):
            made = _IS_CONSTANT if isinstance(node.value, (int, float)) else None
        elif isinstance(node, ast.BinOp):
            made = self._operation(node, file, depth)
        elif isinstance(node, ast.IfExp):
            made = _all(self.number(one, file, depth + 1) for one in (node.body, node.orelse))
        elif isinstance(node, ast.Call):
            made = self._call(node, file, depth)
        elif isinstance(node, ast.Subscript):
            made = self._subscript(node, file, depth)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            made = self._name(node, file, depth)
        return made

    def elements(self, node: ast.expr, file: SourceFile, depth: int) -> _Made:
        """What the elements of a list are made of."""
        made: _Made = None
        if depth > _DEPTH:
            return None
        if self._is_reading(node, file):
            made = _IS_TERM
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            made = self.number(node.elt, file, depth + 1)
        elif isinstance(node, (ast.List, ast.Tuple)):
            made = _all(self._element(one, file, depth + 1) for one in node.elts)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            made = self.elements(node.value, file, depth + 1)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            made = _all(self.elements(one, file, depth + 1) for one in (node.left, node.right))
        elif isinstance(node, ast.Call):
            made = self._call_of_list(node, file, depth)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            self.term.lists.add(node)
            made = self._bounds(node, file, depth, self._listed)
        return made

    def _element(self, node: ast.expr, file: SourceFile, depth: int) -> _Made:
        if isinstance(node, ast.Starred):
            return self.elements(node.value, file, depth)
        return self.number(node, file, depth)

    def _call_of_list(self, node: ast.Call, file: SourceFile, depth: int) -> _Made:
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr == "values" and not node.args:
            return self.entries(called.value, None, file, depth + 1)
        if isinstance(called, ast.Name) and called.id in _KEEPS and node.args:
            return self.elements(node.args[0], file, depth + 1)
        return self._helper(node, None, file, self.elements, depth)

    def entries(self, node: ast.expr, key: str | None, file: SourceFile, depth: int) -> _Made:
        """What the entries of a table are made of, or the one of a key."""
        if depth > _DEPTH:
            return None
        if isinstance(node, ast.DictComp):
            self.term.is_whole = True
            return self.number(node.value, file, depth + 1)
        if isinstance(node, ast.Dict):
            found = [
                one for at, one in zip(node.keys, node.values, strict=True)
                if key is None or (isinstance(at, ast.Constant) and at.value == key)
            ]  # fmt: skip
            return _all(self.number(one, file, depth + 1) for one in found) if found or not node.keys else None
        if isinstance(node, ast.Call):
            given = [one.value for one in node.keywords if key is None or one.arg == key]
            if given and not callees_of(node.func, file, self._program):
                return _all(self.number(one, file, depth + 1) for one in given)
            return self._helper(node, None, file, lambda one, where, below: self.entries(one, key, where, below), depth)
        if isinstance(node, (ast.Name, ast.Attribute)):
            self.term.tables[node] = key
            return self._bounds(node, file, depth, lambda bound, where, below: self._filed(bound, key, where, below))
        return None

    def _is_reading(self, node: ast.AST, file: SourceFile) -> bool:
        """Whether a call reads a tensor on one of the lines; then it is noted."""
        is_here = _is_read_at(node, file, self._lines)
        if is_here and isinstance(node, ast.Call):
            self.term.readings[node] = file
        return is_here

    def _operation(self, node: ast.BinOp, file: SourceFile, depth: int) -> _Made:
        if isinstance(node.op, ast.Add):
            return _all(self.number(one, file, depth + 1) for one in (node.left, node.right))
        if isinstance(node.op, (ast.Mult, ast.Div)) and self._is_factor(node.right, file):
            return self.number(node.left, file, depth + 1)
        if isinstance(node.op, ast.Mult) and self._is_factor(node.left, file):
            return self.number(node.right, file, depth + 1)
        return None

    def _call(self, node: ast.Call, file: SourceFile, depth: int) -> _Made:
        called = self._program.names(file).qualified(node.func) or ""
        if called in _SUMS and node.args:
            self.term.sums[node] = file
            return self.elements(node.args[0], file, depth + 1)
        if called == "float" and len(node.args) == 1:
            return self.number(node.args[0], file, depth + 1)
        return self._helper(node, None, file, self.number, depth)

    def _subscript(self, node: ast.Subscript, file: SourceFile, depth: int) -> _Made:
        at = node.slice
        if isinstance(at, ast.Constant) and isinstance(at.value, str):
            return self.entries(node.value, at.value, file, depth + 1)
        if isinstance(at, (ast.Constant, ast.UnaryOp)):
            return self.elements(node.value, file, depth + 1)
        return None

    def _name(self, node: ast.Name | ast.Attribute, file: SourceFile, depth: int) -> _Made:
        name = dotted_name(node)
        if isinstance(node, ast.Attribute) and not (name and reaching(name, node, file)):
            self.term.is_clear = False  # an object, of a class that may ask for numbers
            return self.entries(node.value, node.attr, file, depth + 1)
        return self._bounds(node, file, depth, self._bound)

    def _bounds(
        self, node: ast.expr, file: SourceFile, depth: int, read: Callable[[Bound, SourceFile, int], _Made]
    ) -> _Made:
        """What a name is made of, by all that binds it before its use; of a parameter, by what the calls give."""
        name = dotted_name(node)
        if name is None:
            return None
        self.term.names[node] = file
        bounds = reaching(name, node, file) or self._of_object(name, node, file)
        if not bounds:
            return self._given(name, node, file, depth, read)
        is_kept = not any(scope_of(one.statement, file) is scope_of(node, file) for one in bounds)
        if any(_is_pile(one) for one in bounds) and not is_kept and not _is_fresh(bounds, node, file):
            return None
        made = []
        for one in bounds:
            if one in self._open:
                continue
            self.term.bounds.add(one)
            self._open.add(one)
            made.append(read(one, file, depth + 1))
            self._open.discard(one)
        return _all(made)

    def _of_object(self, name: str, node: ast.expr, file: SourceFile) -> list[Bound]:
        """What other methods give an attribute that is a table: its entries are written anew in each step, `self.seen[key] = x`."""
        owner = self._program.names(file).class_of(node) if name.startswith("self.") else None
        methods = [one for one in owner.body if isinstance(one, ast.FunctionDef)] if owner is not None else []
        found = [one for each in methods for one in bounds_of(each) if one.name == name]
        is_table = all(isinstance(one.statement, ast.Assign) for one in found) and any(one.fills for one in found)
        return found if is_table else []

    def _given(
        self, name: str, node: ast.expr, file: SourceFile, depth: int, read: Callable[[Bound, SourceFile, int], _Made]
    ) -> _Made:
        made: list[_Made] = []
        for call, where, given in self._arguments(name, node, file):
            self.term.calls[call] = getattr(scope_of(node, file), "name", "")
            made.append(read(Bound(name, given, given), where, depth + 1))
        self.term.is_clear = self.term.is_clear and None not in made
        return _IS_TERM if _IS_TERM in made else None

    def _arguments(
        self, name: str, node: ast.expr, file: SourceFile
    ) -> Iterator[tuple[ast.Call, SourceFile, ast.expr]]:
        """What the calls of the function around a node give its parameter."""
        scope = scope_of(node, file)
        if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) or name not in all_parameters(scope):
            return
        for where, call in find_calls(self._program):
            if (dotted_name(call.func) or "").rpartition(".")[2] == scope.name:
                given = bind_call(call, scope, Value(call, where)).get(name)
                if given is not None:
                    yield call, where, given.node

    def _bound(self, bound: Bound, file: SourceFile, depth: int) -> _Made:
        """What a binding makes a number of."""
        statement = bound.statement
        if isinstance(statement, ast.AugAssign) and not isinstance(statement.op, ast.Add):
            is_scaled = isinstance(statement.op, (ast.Mult, ast.Div)) and self._is_factor(bound.node, file)
            return _IS_CONSTANT if is_scaled else None
        if bound.fills and not (
            isinstance(statement, ast.AugAssign) and not isinstance(statement.target, ast.Subscript)
        ):
            return None
        if bound.is_element and bound.pick is None:
            return self.elements(bound.node, file, depth)
        if bound.is_element:
            return self._item(bound, file, depth)
        if bound.pick is not None:
            return self._helper(bound.node, bound.pick, file, self.number, depth)
        return self.number(bound.node, file, depth)

    def _item(self, bound: Bound, file: SourceFile, depth: int) -> _Made:
        """The second of `for name, value in table.items()`."""
        called = bound.node.func if isinstance(bound.node, ast.Call) else None
        is_items = isinstance(called, ast.Attribute) and called.attr == "items" and bound.pick == 1
        return self.entries(called.value, None, file, depth) if is_items and isinstance(called, ast.Attribute) else None

    def _listed(self, bound: Bound, file: SourceFile, depth: int) -> _Made:
        """What a binding makes the elements of a list of."""
        statement = bound.statement
        if isinstance(statement, ast.Call) and isinstance(statement.func, ast.Attribute):
            self.term.fills.add(statement.func.value)
            read = self.elements if statement.func.attr == "extend" else self.number
            return read(bound.node, file, depth)
        if isinstance(statement, ast.AugAssign):
            return self.elements(bound.node, file, depth) if isinstance(statement.op, ast.Add) else None
        if bound.fills or bound.is_element:
            return None
        if bound.pick is not None:
            return self._helper(bound.node, bound.pick, file, self.elements, depth)
        return self.elements(bound.node, file, depth)

    def _filed(self, bound: Bound, key: str | None, file: SourceFile, depth: int) -> _Made:
        """What a binding makes the entries of a table of."""
        if bound.fills:
            is_entry = isinstance(bound.statement, ast.Assign) and bound.pick is None
            if is_entry and key is not None and bound.key is not None and bound.key != key:
                return _IS_CONSTANT
            return self.number(bound.node, file, depth) if is_entry else None
        if bound.is_element or bound.pick is not None:
            return None
        if isinstance(bound.node, ast.Dict) and not bound.node.keys:
            return _IS_CONSTANT
        return self.entries(bound.node, key, file, depth)

    def _helper(
        self,
        node: ast.expr,
        pick: int | None,
        file: SourceFile,
        read: Callable[[ast.expr, SourceFile, int], _Made],
        depth: int,
    ) -> _Made:
        """What a function of the program hands back, or one part of that."""
        if not isinstance(node, ast.Call):
            return None
        found = self._called(node, file)
        where, function = found[0] if len(found) == 1 else (file, None)
        if not isinstance(function, ast.FunctionDef) or function.decorator_list:
            return None
        handed = [one.value for one in walk_scope(function) if isinstance(one, ast.Return)]
        if pick is not None:
            handed = [one.elts[pick] if isinstance(one, ast.Tuple) and pick < len(one.elts) else None for one in handed]
        self.term.calls[node] = function.name
        return _all(read(one, where, depth + 1) if one is not None else None for one in handed) if handed else None

    def _called(self, node: ast.Call, file: SourceFile) -> list[tuple[SourceFile, ast.AST]]:
        """What a call runs; where its owner is not known, the one method of that name, if one of the lines stands in its class."""
        found = callees_of(node.func, file, self._program)
        if found or not isinstance(node.func, ast.Attribute):
            return [(one.file, one.function) for one in found]
        named = [
            (where, one, self._program.names(where).class_of(one) or one)
            for where, one in self._program.functions_named(node.func.attr)
        ]
        return [
            (where, one)
            for where, one, owner in named
            if any(path == where.path and owner.lineno <= line <= (owner.end_lineno or 0) for path, line in self._lines)
        ]

    def _is_factor(self, node: ast.expr, file: SourceFile) -> bool:
        """Whether no reading goes into an expression, but for how many there are; a negative one takes off."""
        todo: list[tuple[ast.AST, SourceFile]] = [(node, file)]
        seen: set[tuple[str, str]] = set()
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return False
        while todo:
            one, where = todo.pop()
            if isinstance(one, ast.Call) and dotted_name(one.func) == "len":
                continue
            if _is_read_at(one, where, self._lines) or len(seen) > _NAMES:
                return False
            if isinstance(one, ast.Call):
                todo += [(each, place) for place, each in self._called(one, where)]
            name = one.id if isinstance(one, ast.Name) else None
            if name is not None and (where.path, name) not in seen:
                seen.add((where.path, name))
                todo += [(bound.node, where) for bound in reaching(name, one, where)]
                todo += [(given, place) for _, place, given in self._arguments(name, one, where)]  # type: ignore[arg-type]
            kept = dotted_name(one) if isinstance(one, ast.Attribute) else None
            if kept is not None and (where.path, kept) not in seen:
                seen.add((where.path, kept))
                todo += [(bound.node, where) for bound in self._of_object(kept, one, where)]  # type: ignore[arg-type]
            todo += [(each, where) for each in ast.iter_child_nodes(one)]
        return True


def _is_read_at(node: ast.AST, file: SourceFile, lines: Lines) -> bool:
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
    return tensor_of(node) is not None and any((file.path, line) in lines for line in range(first, last + 1))


def _all(made: Collection[_Made] | Iterator[_Made]) -> _Made:
    """What is made of several parts: of readings where any is, of something else where any is."""
    found = list(made)
    return None if None in found else any(found)


def _is_pile(bound: Bound) -> bool:
    """Whether a binding adds to what a name held before."""
    return bound.fills or any(dotted_name(one) == bound.name for one in walk(bound.node))


def _is_fresh(bounds: list[Bound], node: ast.AST, file: SourceFile) -> bool:
    """Whether what a name holds was begun in the same round of each loop around its use: what runs on is of earlier steps."""
    made = [one for one in bounds if not _is_pile(one)]
    rounds = [set(walk(one)) for one in _rounds(node, file)]
    return bool(made) and all(one.statement in inside for one in made for inside in rounds)


def _rounds(node: ast.AST, file: SourceFile) -> Iterator[ast.AST]:
    """The loops of a function in whose body a node stands."""
    scope, below, above = scope_of(node, file), node, file.parents.get(node)
    while above is not None and below is not scope:
        if isinstance(above, _LOOPS) and below in above.body:
            yield above
        below, above = above, file.parents.get(above)
