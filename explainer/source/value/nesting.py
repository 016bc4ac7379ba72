"""How a value is nested: a tensor, lists, tuples and dictionaries of tensors, followed through the program.

A recurrent state shows it where it is first made (`[(zeros, zeros) for cell in cells]`) and in what the cell gives back.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value, bind_call, bounds_of, scope_of
from explainer.source.value.fields import given_field
from explainer.source.value.record import Record, record_of
from explainer.source.value.resolve import Resolver, resolver_of

_DEPTH = 24
_STEPS = 3000


@dataclass(frozen=True, slots=True)
class Nesting:
    """One level of a value. `parts` are those of a display, `each` is what all parts are where their number is not known.

    `names` are those of the parts where they have any: keys that are words, the fields of a record.
    """

    kind: str
    parts: tuple[Nesting, ...] = ()
    each: Nesting | None = None
    may_be_none: bool = False
    names: tuple[str, ...] = ()

    @property
    def element(self) -> Nesting:
        """What any part of a container is."""
        return self.each if self.each is not None else reduce(_joined, self.parts, UNKNOWN)

    @property
    def is_container(self) -> bool:
        """Whether it holds parts."""
        return self.kind in ("list", "tuple", "named", "dict", "record")

    def named(self, name: str) -> Nesting | None:
        """The part of that name."""
        return self.parts[self.names.index(name)] if name in self.names else None

    def filled(self, name: str, part: Nesting) -> Nesting:
        """The same with one more value for the part of that name."""
        if name in self.names:
            at = self.names.index(name)
            return replace(self, parts=(*self.parts[:at], _joined(self.parts[at], part), *self.parts[at + 1 :]))
        return replace(self, parts=(*self.parts, part), names=(*self.names, name))


UNKNOWN, TENSOR, NONE = Nesting("unknown"), Nesting("tensor"), Nesting("none")
EITHER = Nesting("either")  # a tensor or a tuple of them, by the layer that was chosen
PLAIN = Nesting("plain")  # a number, a word: nothing that could be detached
_PAIR = Nesting("tuple", (TENSOR, TENSOR))
_LAYERS = {
    "LSTM": Nesting("tuple", (TENSOR, _PAIR)), "GRU": _PAIR, "RNN": _PAIR, "MultiheadAttention": _PAIR,
    "LSTMCell": _PAIR, "GRUCell": TENSOR, "RNNCell": TENSOR,
}  # fmt: skip
_NAMED = ("LSTM", "GRU", "RNN")  # what a word from outside may name
_CHOICES = 6
_CONTAINERS = frozenset({"ModuleList", "ModuleDict", "Sequential", "ParameterList", "ParameterDict"})
_TUPLES = frozenset({"chunk", "split", "unbind", "tensor_split"})
_UNCLEAR = frozenset(
    {"size", "tolist", "numpy", "item", "max", "min", "sort", "topk", "median", "mode", "items", "keys", "values", "get"}
    | {"pop", "copy", "load", "backward", "step", "read", "format", "join", "std_mean", "var_mean"}
)  # fmt: skip
_ADDS = {"append": True, "insert": True, "appendleft": True, "add": True, "extend": False}


def nesting_of(node: ast.expr, file: SourceFile, program: Program) -> Nesting:
    """How the value of an expression is nested; of unknown kind where the program does not tell."""
    return _Reader(resolver_of(program)).read(Value(node, file))


def nesting_bound(statement: ast.stmt, name: str, file: SourceFile, program: Program) -> Nesting:
    """How that is nested which a statement binds a name to."""
    for one in bounds_of(scope_of(statement, file)):
        if one.statement is statement and one.name == name and not one.fills:
            value = Value(one.node, file, {}, one.pick, one.is_element, one.statement)
            return _Reader(resolver_of(program)).read(value)
    return UNKNOWN


def nesting_of_entry(
    place: ast.Subscript | ast.Attribute, statement: ast.stmt, file: SourceFile, program: Program
) -> Nesting:
    """How that is nested which a statement gives to an entry or attribute: `state["h"]` of `state["h"], state["c"] = cell(...)`."""
    is_entry = isinstance(place, ast.Subscript)
    name = dotted_name(place.value) if is_entry else dotted_name(place)
    key = place.slice.value if isinstance(place, ast.Subscript) and isinstance(place.slice, ast.Constant) else None
    for one in bounds_of(scope_of(statement, file)):
        if (
            one.statement is statement
            and one.name == name
            and one.fills == is_entry
            and (not is_entry or one.key == key)
        ):
            value = Value(one.node, file, {}, one.pick, one.is_element, one.statement)
            return _Reader(resolver_of(program)).read(value)
    return UNKNOWN


def nesting_filled(node: ast.expr, file: SourceFile, program: Program) -> Nesting:
    """How the value of a name is nested, with all that its function puts into it, also behind the place where it is read."""
    found, name = nesting_of(node, file, program), dotted_name(node)
    for one in bounds_of(scope_of(node, file)) if found.is_container else ():
        if one.name == name and one.fills and isinstance(one.statement, ast.Assign):
            value = Value(one.node, file, {}, one.pick, one.is_element, one.statement)
            found = _with_part(found, one.key, _Reader(resolver_of(program)).read(value))
    return found


class _Reader:
    """Reads one value; what is made of itself adds nothing."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._open: set[tuple[int, int | str | None, bool, int]] = set()
        self._steps = 0

    def read(self, value: Value, depth: int = 0) -> Nesting:
        key = (id(value.node), value.pick, value.is_element, id(value.arguments) if value.arguments else 0)
        if key in self._open or depth > _DEPTH or self._steps > _STEPS:
            return UNKNOWN
        self._open.add(key)
        self._steps += 1
        try:
            whole = self._node(replace(value, pick=None, is_element=False), depth)
        finally:
            self._open.discard(key)
        if value.is_element:
            whole = _element(whole)
        return _part(whole, value.pick) if value.pick is not None else whole

    def _each(self, nodes: Iterable[ast.expr], value: Value, depth: int) -> tuple[Nesting, ...]:
        return tuple(self.read(replace(value, node=one), depth + 1) for one in nodes)

    def _node(self, value: Value, depth: int) -> Nesting:
        node = value.node
        if isinstance(node, ast.Constant):
            return NONE if node.value is None else PLAIN
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._named(node, value, depth)
        if isinstance(node, ast.Call):
            return self._call(node, value, depth)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, value, depth)
        return self._operation(node, value, depth) or self._display(node, value, depth)

    def _operation(self, node: ast.expr, value: Value, depth: int) -> Nesting | None:
        if isinstance(node, ast.IfExp):
            return _joined(*self._each((node.body, node.orelse), value, depth))
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node, value, depth)
        if isinstance(node, ast.UnaryOp):
            return UNKNOWN if isinstance(node.op, ast.Not) else TENSOR
        return self.read(replace(value, node=node.value), depth + 1) if isinstance(node, ast.NamedExpr) else None

    def _display(self, node: ast.expr, value: Value, depth: int) -> Nesting:
        """A list, tuple or dictionary that is written out, or a comprehension."""
        if isinstance(node, (ast.Tuple, ast.List)):
            kind = "tuple" if isinstance(node, ast.Tuple) else "list"
            is_open = any(isinstance(one, ast.Starred) for one in node.elts)
            return Nesting(kind, each=UNKNOWN) if is_open else Nesting(kind, self._each(node.elts, value, depth))
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return Nesting("list", each=self.read(replace(value, node=node.elt), depth + 1))
        if isinstance(node, ast.Dict):
            keys = [one.value for one in node.keys if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            return _dictionary(keys, self._each(node.values, value, depth))
        if isinstance(node, ast.DictComp):
            return Nesting("dict", each=self.read(replace(value, node=node.value), depth + 1))
        return UNKNOWN

    def _arithmetic(self, node: ast.BinOp, value: Value, depth: int) -> Nesting:
        """`[None] * n` and `[h] + rest` are lists; all other arithmetic is on tensors."""
        sides = self._each((node.left, node.right), value, depth)
        held = [one for one in sides if one.is_container]
        if not held:
            return PLAIN if all(one.kind == "plain" for one in sides) else TENSOR
        return Nesting(held[0].kind, each=reduce(_joined, (one.element for one in held)))

    def _subscript(self, node: ast.Subscript, value: Value, depth: int) -> Nesting:
        whole = self.read(replace(value, node=node.value), depth + 1)
        if isinstance(node.slice, ast.Slice):
            return whole if not whole.parts else Nesting(whole.kind, each=whole.element)
        at = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return _part(whole, at) if isinstance(at, (int, str)) else _element(whole)

    def _named(self, node: ast.Name | ast.Attribute, value: Value, depth: int) -> Nesting:
        """What a name is bound to, and what it is filled with: `fresh = []`, `fresh.append((h, c))`."""
        name = dotted_name(node)
        found = UNKNOWN
        added: list[tuple[str | None, Nesting]] = []
        for one in self._resolver.behind(value):
            nesting = self.read(one, depth + 1)
            how = _added(one.statement, name) if one.statement is not None else None
            if how is None:
                found = _joined(found, nesting)
            else:
                added.append((one.key, nesting if how else _element(nesting)))
        if found is UNKNOWN and not added and isinstance(node, ast.Attribute):
            return self.read(replace(value, node=node.value), depth + 1).named(node.attr) or UNKNOWN
        for key, part in added if found.is_container else ():
            found = _with_part(found, key, part)
        return found

    def _call(self, node: ast.Call, value: Value, depth: int) -> Nesting:
        names = self._resolver.program.names(value.file)
        called = names.qualified(node.func) or ""
        if called in ("tuple", "list", "reversed", "sorted", "zip", "enumerate", "dict", "dict.fromkeys"):
            return self._built_in(called, node, value, depth)
        record = record_of(Value(node.func, value.file), self._resolver)
        if record is not None:
            return self._record(record, node, value, depth)
        if self._resolver.find_class(node.func, value.file) is not None:
            return UNKNOWN
        if called == "dataclasses.replace" and node.args:
            return self._replaced(node.args[0], node, value, depth)
        body = self._lambda(node, value)
        if body is not None:
            return self.read(body, depth + 1)
        function = self._resolver.function_of(node, value)
        if function is not None:
            returned = self._resolver.returns_of(function, node, value)
            return reduce(_joined, (self.read(one, depth + 1) for one in returned), UNKNOWN)
        if called.startswith("torch."):
            last = called.rpartition(".")[2]
            is_unclear = last in _UNCLEAR or last[:1].isupper()
            return Nesting("tuple", each=TENSOR) if last in _TUPLES else UNKNOWN if is_unclear else TENSOR
        ran = self._module(node, value, depth)
        return ran if ran is not None else self._method(node, value, depth)

    def _record(self, record: Record, node: ast.Call, value: Value, depth: int) -> Nesting:
        """What a call makes of the class of a record: each field as it is given, or as its class has it."""
        given = [*node.args, *(one.value for one in node.keywords)]
        if any(isinstance(one, ast.Starred) for one in node.args) or None in [one.arg for one in node.keywords]:
            return Nesting(record.kind, each=UNKNOWN)
        if not record.fields:
            return Nesting(record.kind, self._each(given, value, depth))
        parts = []
        for field in record.fields:
            one = given_field(field, record.fields, replace(value, node=node)) or record.defaults.get(field)
            read = self.read(one, depth + 1) if one is not None else UNKNOWN
            parts.append(read if read.kind != "unknown" else _annotated(record.annotations.get(field)))
        return Nesting(record.kind, tuple(parts), names=record.fields)

    def _replaced(self, old: ast.expr, node: ast.Call, value: Value, depth: int) -> Nesting:
        """`state._replace(h=h)`: the old record with other values for some of its fields."""
        found = self.read(replace(value, node=old), depth + 1)
        for one in node.keywords if found.names else ():
            if one.arg is not None:
                found = found.filled(one.arg, self.read(replace(value, node=one.value), depth + 1))
        return found

    def _lambda(self, node: ast.Call, value: Value) -> Value | None:
        """What a function without a name gives back: `zero = lambda: (zeros, zeros)`."""
        if not isinstance(node.func, ast.Name):
            return None
        made = [one for one in self._resolver.behind(Value(node.func, value.file)) if isinstance(one.node, ast.Lambda)]
        function = made[0].node if len(made) == 1 else None
        if not isinstance(function, ast.Lambda):
            return None
        return Value(function.body, made[0].file, bind_call(node, function, value))

    def _built_in(self, called: str, node: ast.Call, value: Value, depth: int) -> Nesting:
        if called == "dict":
            keys = [one.arg for one in node.keywords if one.arg is not None]
            return _dictionary(
                keys if not node.args else [], self._each([one.value for one in node.keywords], value, depth)
            )
        given = self._each(node.args, value, depth)
        if called == "dict.fromkeys":
            return Nesting("dict", each=given[1] if given[1:] else NONE)
        if called == "zip":
            return Nesting("list", each=Nesting("tuple", tuple(one.element for one in given)))
        if called == "enumerate" and given:
            return Nesting("list", each=Nesting("tuple", (UNKNOWN, given[0].element)))
        kind = "tuple" if called == "tuple" else "list"
        return replace(given[0], kind=kind) if given and given[0].is_container else Nesting(kind, each=UNKNOWN)

    def _module(self, node: ast.Call, value: Value, depth: int) -> Nesting | None:
        """What a layer of torch gives back, or the `forward` of a module of the program; None where none is called."""
        found: list[Nesting] = []
        for one in self._resolver.constructors_of(Value(node.func, value.file, value.arguments)):
            if not isinstance(one.node, ast.Call):
                continue
            called = self._resolver.program.names(one.file).qualified(one.node.func) or ""
            owner = self._resolver.find_class(one.node.func, one.file)
            last = called.rpartition(".")[2]
            if owner is not None:
                method = self._resolver.method(owner[1], "forward", owner[0])
                returned = self._resolver.returns_of(method, node, value) if method is not None else []
                found += [self.read(each, depth + 1) for each in returned]
            elif called.startswith("torch.nn.") and last not in _CONTAINERS:
                found.append(_LAYERS.get(last, TENSOR))
            elif chosen := set(self._chosen(Value(one.node.func, one.file), 0)) & set(_LAYERS):
                kinds = {_LAYERS[one] for one in chosen}
                found.append(kinds.pop() if len(kinds) == 1 else Nesting("tuple", (TENSOR, EITHER)))
        return reduce(_joined, found) if found else None

    def _chosen(self, value: Value, depth: int) -> Iterator[str]:
        """The layers of torch of which one is chosen: `{"lstm": nn.LSTM, "gru": nn.GRU}[kind]`, `getattr(nn, kind)`."""
        node, names = value.node, self._resolver.program.names(value.file)
        called = names.qualified(node) or ""
        if called.startswith("torch.nn."):
            yield called.rpartition(".")[2]
        elif isinstance(node, ast.Call) and dotted_name(node.func) == "getattr" and node.args:
            yield from _NAMED if names.qualified(node.args[0]) == "torch.nn" else ()
        elif depth < _CHOICES:
            inside: list[ast.expr] = [node.value] if isinstance(node, ast.Subscript) else []
            inside += [node.body, node.orelse] if isinstance(node, ast.IfExp) else []
            inside += node.values if isinstance(node, ast.Dict) else []
            behind = self._resolver.behind(value) if isinstance(node, (ast.Name, ast.Attribute)) else ()
            for one in (*behind, *(replace(value, node=each) for each in inside)):
                yield from self._chosen(one, depth + 1)

    def _method(self, node: ast.Call, value: Value, depth: int) -> Nesting:
        """A method of a tensor gives a tensor, or several."""
        if not isinstance(node.func, ast.Attribute):
            return UNKNOWN
        method = node.func.attr
        if method in _TUPLES:
            return Nesting("tuple", each=TENSOR)
        if method == "values":
            return self.read(replace(value, node=node.func.value), depth + 1)
        if method == "items":
            held = self.read(replace(value, node=node.func.value), depth + 1)
            return Nesting("list", each=Nesting("tuple", (UNKNOWN, held.element)))
        if method == "_replace":
            return self._replaced(node.func.value, node, value, depth)
        if method in _UNCLEAR:
            return UNKNOWN
        is_new = method.startswith("new_")
        return (
            TENSOR if is_new or self.read(replace(value, node=node.func.value), depth + 1).kind == "tensor" else UNKNOWN
        )


def _dictionary(keys: Sequence[str], parts: tuple[Nesting, ...]) -> Nesting:
    """A dictionary of these parts, by name where all keys are words."""
    if len(keys) == len(parts):
        return Nesting("dict", parts, names=tuple(keys))
    return Nesting("dict", each=reduce(_joined, parts, UNKNOWN))


def _with_part(whole: Nesting, key: str | None, part: Nesting) -> Nesting:
    """A container into which one more part was put."""
    if key is not None and (whole.names or (whole.kind == "dict" and whole.each is None)):
        return whole.filled(key, part)
    return Nesting(whole.kind, each=_joined(part, whole.element), may_be_none=whole.may_be_none)


def _joined(one: Nesting, other: Nesting) -> Nesting:
    """What a value is that is either; the first where they are containers of different kinds, a tensor rather than a number."""
    if one.kind == "unknown" or (one.kind == "plain" and other.kind != "unknown"):
        return other
    if other.kind in ("unknown", "plain"):
        return one
    if "none" in (one.kind, other.kind):
        held = other if one.kind == "none" else one
        return held if held.kind == "none" else replace(held, may_be_none=True)
    may_be_none = one.may_be_none or other.may_be_none
    if not one.is_container or not other.is_container:
        return replace(one, may_be_none=may_be_none) if one.kind == other.kind else UNKNOWN
    if one.names and other.names:
        for name, part in zip(other.names, other.parts, strict=True):
            one = one.filled(name, part)
        return replace(one, may_be_none=may_be_none)
    if one.parts and len(one.parts) == len(other.parts):
        parts = tuple(map(_joined, one.parts, other.parts))
        return Nesting(one.kind, parts, may_be_none=may_be_none, names=one.names or other.names)
    return Nesting(one.kind, each=_joined(one.element, other.element), may_be_none=may_be_none)


def _annotated(annotation: ast.expr | None) -> Nesting:
    """What a field is by its annotation: `step: int` holds nothing that could be detached."""
    said = ast.unparse(annotation).strip("'\"") if annotation is not None else ""
    return PLAIN if said in ("int", "float", "str", "bool") else TENSOR if said.endswith("Tensor") else UNKNOWN


def _element(whole: Nesting) -> Nesting:
    return TENSOR if whole.kind == "tensor" else whole.element if whole.is_container else UNKNOWN


def _part(whole: Nesting, at: int | str | None) -> Nesting:
    """The part at a place or of a name."""
    named = whole.named(at) if isinstance(at, str) else None
    if named is not None:
        return named
    if isinstance(at, int) and -len(whole.parts) <= at < len(whole.parts):
        return whole.parts[at]
    return _element(whole)


def _added(statement: ast.AST, name: str | None) -> bool | None:
    """Whether a statement puts one more part into a container (True) or several (False); None where it binds the name."""
    if isinstance(statement, ast.Call) and isinstance(statement.func, ast.Attribute):
        return _ADDS.get(statement.func.attr, False)
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.target, ast.Subscript)
    if isinstance(statement, ast.Assign):
        return True if name not in set(_bound(statement.targets)) else None
    return None


def _bound(targets: Iterable[ast.expr]) -> Iterator[str | None]:
    for one in targets:
        if isinstance(one, (ast.Tuple, ast.List)):
            yield from _bound(one.elts)
        else:
            yield dotted_name(one)
