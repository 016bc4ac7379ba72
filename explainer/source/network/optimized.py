"""The tensors that a program gives its optimizers, followed to the expressions that make them.

Through groups, lists and comprehensions, dictionaries of tensors (`tensors.values()`, `for name, t in tensors.items()`, `tensors[name]`),
functions and attributes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.value.binding import Value, find_calls
from explainer.source.value.resolve import Resolver, resolver_of

_DEPTH = 14
_OPTIM = "torch.optim."
_NO_OPTIMIZERS = ("torch.optim.lr_scheduler", "torch.optim.swa_utils")
_LISTS = frozenset({"list", "tuple", "set", "sorted", "reversed", "iter", "chain", "from_iterable"})
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.ListComp, ast.GeneratorExp)
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Given:
    """A tensor that an optimizer is given: the expression that makes it, and the call of the program's function that does, if one does.

    A function that returns tensors in a list or a dictionary is no such function: it makes what it names.
    """

    value: Value
    call: Value | None

    @property
    def place(self) -> Value:
        """Where the program that needs the tensor makes it: the call, or the expression itself."""
        return self.call or self.value


def optimizer_calls(program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The calls that give an optimizer tensors: those that make one, and `add_param_group`."""
    for file, call in find_calls(program):
        is_added = isinstance(call.func, ast.Attribute) and call.func.attr == "add_param_group"
        if is_added or _is_optimizer(Value(call.func, file), program, 0):
            yield file, call


def tensors_given(call: ast.Call, file: SourceFile, program: Program) -> Iterator[Given]:
    """What such a call is given; of a module's parameters the call that lists them."""
    named = {one.arg: one.value for one in call.keywords}
    first = call.args[0] if call.args else named.get("params", named.get("param_group"))
    if first is not None:
        yield from _tensors(Value(first, file), None, resolver_of(program), 0)


def _is_optimizer(value: Value, program: Program, depth: int) -> bool:
    """Whether an expression is a class of optimizers, by its name, out of a dictionary of such, or by `getattr`."""
    node, resolver = value.node, resolver_of(program)
    called = program.names(value.file).qualified(node) or ""
    if called.startswith(_OPTIM):
        return not called.startswith(_NO_OPTIMIZERS)
    owner = resolver.find_class(node, value.file) if isinstance(node, (ast.Name, ast.Attribute)) else None
    if owner is not None:
        bases = (program.names(owner[0]).qualified(base) or "" for base in owner[1].bases)
        return any(one.startswith(_OPTIM) for one in bases)
    if depth > _DEPTH:
        return False
    if isinstance(node, ast.Call):
        last = (program.names(value.file).qualified(node.func) or "").rpartition(".")[2]
        is_of_optim = last == "getattr" and program.names(value.file).qualified(node.args[0]) == "torch.optim"
        parts = [replace(value, node=node.args[0])] if last == "partial" and node.args else []
        return is_of_optim or any(_is_optimizer(one, program, depth + 1) for one in parts)
    if isinstance(node, ast.Subscript):
        return any(_is_optimizer(one, program, depth + 1) for one in _entries(value, resolver, depth + 1))
    if isinstance(node, ast.IfExp):
        return any(_is_optimizer(replace(value, node=one), program, depth + 1) for one in (node.body, node.orelse))
    if isinstance(node, ast.Name):
        return any(_is_optimizer(one, program, depth + 1) for one in resolver.behind(value))
    return False


def _tensors(value: Value, call: Value | None, resolver: Resolver, depth: int) -> Iterator[Given]:
    """The tensors of a list of parameters, or of one group; `call` is the function's that has made them."""
    node = value.node
    parts = _parts(value, resolver, depth) if depth < _DEPTH else []
    if parts is None:
        yield Given(value=value, call=call)
    if isinstance(node, ast.Call) and resolver.function_of(node, value) is not None:
        call = call or value
    elif not isinstance(node, (ast.Name, ast.Attribute)) and not (
        isinstance(node, ast.Tuple) and value.pick is not None
    ):
        call = None
    for one in parts or ():
        yield from _tensors(one, call, resolver, depth + 1)


def _parts(value: Value, resolver: Resolver, depth: int) -> list[Value] | None:
    """What a list, a group or a name stands for; None of what makes a tensor itself."""
    node = value.node
    if isinstance(node, (ast.Name, ast.Attribute)):
        return [_handed_on(one, value) for one in resolver.behind(value)]
    if isinstance(node, ast.Subscript):
        return list(_entries(value, resolver, depth + 1)) or None
    return _of_call(node, value, resolver, depth) if isinstance(node, ast.Call) else _displayed(node, value)


def _displayed(node: ast.expr, value: Value) -> list[Value] | None:
    """The parts of what is written out: a group, a list, one of two, a list and another."""
    if isinstance(node, ast.Dict):
        keys = [getattr(key, "value", None) for key in node.keys]
        given = [one for key, one in zip(keys, node.values, strict=True) if key in ("params", None)]
        return [replace(value, node=one, pick=None) for one in given]
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return _elements(node.elts, value)
    if isinstance(node, _COMPREHENSIONS):
        return [replace(value, node=node.elt, is_element=False)]
    if isinstance(node, ast.Starred):
        return [replace(value, node=node.value)]
    if isinstance(node, ast.IfExp):
        return [replace(value, node=one) for one in (node.body, node.orelse)]
    is_sum = isinstance(node, ast.BinOp) and (_is_list(node.left) or _is_list(node.right))
    return [replace(value, node=one) for one in (node.left, node.right)] if is_sum else None  # type: ignore[attr-defined]


def _elements(nodes: list[ast.expr], value: Value) -> list[Value]:
    """The elements of a list: of one that is unpacked the one that is taken, of one that a loop walks each, with what is taken of it."""
    if isinstance(value.pick, int) and not value.is_element:
        taken = nodes[value.pick : value.pick + 1]
        return [replace(value, node=one, pick=None) for one in taken]
    return [replace(value, node=one, is_element=False) for one in nodes]


def _handed_on(bound: Value, value: Value) -> Value:
    """What a name is bound to, with what is taken of it where that is said by the name's user."""
    is_element = bound.is_element or value.is_element
    return replace(bound, pick=value.pick if bound.pick is None else bound.pick, is_element=is_element)


def _is_list(node: ast.expr) -> bool:
    called = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
    return isinstance(node, _DISPLAYS) or called in ("list", "tuple")


def _of_call(node: ast.Call, value: Value, resolver: Resolver, depth: int) -> list[Value] | None:
    """What a call hands on: the values of a dictionary, a list of others, what a function of the program returns."""
    target = resolver.function_of(node, value)
    if target is not None:
        return [_handed_on(one, value) for one in resolver.returns_of(target, node, value)]
    func = node.func
    last = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    if last in ("values", "items") and isinstance(func, ast.Attribute) and not node.args:
        is_key = last == "items" and value.pick != 1
        return [] if is_key else list(_held(replace(value, node=func.value), None, resolver, depth + 1))
    if last == "filter" and len(node.args) == 2:
        return [replace(value, node=node.args[1])]
    if last == "dict" and node.keywords:
        return [replace(value, node=one.value) for one in node.keywords if one.arg in ("params", None)]
    return [replace(value, node=one) for one in node.args] if last in _LISTS and node.args else None


def _entries(value: Value, resolver: Resolver, depth: int) -> Iterator[Value]:
    """What `tensors[name]` may be: the entry of that key, any where the key is no constant."""
    assert isinstance(value.node, ast.Subscript)
    key = value.node.slice.value if isinstance(value.node.slice, ast.Constant) else None
    yield from _held(replace(value, node=value.node.value), key, resolver, depth)


def _held(value: Value, key: object, resolver: Resolver, depth: int) -> Iterator[Value]:
    """What a dictionary or a list holds, under one key or at all."""
    value = replace(value, pick=None, is_element=False)
    node = value.node
    if depth > _DEPTH:
        return
    if isinstance(node, ast.Dict):
        for name, one in zip(node.keys, node.values, strict=True):
            if name is None:
                yield from _held(replace(value, node=one), key, resolver, depth + 1)
            elif key is None or not isinstance(name, ast.Constant) or name.value == key:
                yield replace(value, node=one)
    elif isinstance(node, (ast.List, ast.Tuple)):
        at = node.elts[key : key + 1] if isinstance(key, int) and key >= 0 else node.elts
        yield from (replace(value, node=one) for one in at)
    elif isinstance(node, (ast.DictComp, *_COMPREHENSIONS)):
        yield replace(value, node=node.value if isinstance(node, ast.DictComp) else node.elt)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        yield from _held_by_name(value, key, resolver, depth)
    elif isinstance(node, ast.Call):
        yield from _held_by_call(node, value, key, resolver, depth)


def _held_by_name(value: Value, key: object, resolver: Resolver, depth: int) -> Iterator[Value]:
    """What a name's dictionary holds as it is made, and what is put into it behind."""
    for bound in resolver.behind(value):
        if not _is_entry(bound):
            yield from _held(bound, key, resolver, depth + 1)
        elif key is None or bound.key in (None, key):
            yield bound


def _is_entry(bound: Value) -> bool:
    """Whether a value was put into what holds it: `tensors["w"] = w`."""
    statement = bound.statement
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(isinstance(one, ast.Subscript) for one in targets)


def _held_by_call(node: ast.Call, value: Value, key: object, resolver: Resolver, depth: int) -> Iterator[Value]:
    target = resolver.function_of(node, value)
    if target is not None:
        for one in resolver.returns_of(target, node, value):
            yield from _held(one, key, resolver, depth + 1)
    elif isinstance(node.func, ast.Name) and node.func.id in ("dict", "list", "tuple", "OrderedDict"):
        yield from (replace(value, node=one.value) for one in node.keywords if key is None or one.arg in (key, None))
        for given in node.args:
            yield from _held(replace(value, node=given), key, resolver, depth + 1)
    elif isinstance(node.func, ast.Attribute) and node.func.attr in ("copy", "values"):
        yield from _held(replace(value, node=node.func.value), key, resolver, depth + 1)
