"""How a collator makes its batch: the expressions and the names behind what it returns, through functions of the program.

`return BatchEncoding(batch)`, `{key: torch.tensor(rows) for key, rows in batch.items()}` and `{**batch, "n": n}` have the keys of
`batch`. The rows that a collator is given are no batch, nor is what loops walk.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bind_call, walk_scope
from explainer.source.value.callee import callees_of

Maker = Function | ast.Lambda
_SAME_KEYS = frozenset({"dict", "OrderedDict", "BatchEncoding", "BatchFeature", "UserDict"})
_SAME_OBJECT = frozenset({"to", "copy", "items", "convert_to_tensors"})
_LIMIT = 400


@dataclass(slots=True)
class Batch:
    """The functions that make a batch, each with its file, the names in them that stand for it, and its expressions."""

    makers: dict[Maker, SourceFile] = field(default_factory=dict)
    names: set[tuple[Maker, str]] = field(default_factory=set)
    parts: dict[ast.expr, Maker] = field(default_factory=dict)


def batch_of(maker: Maker, file: SourceFile, program: Program) -> Batch:
    """The batch that a function returns."""
    batch = Batch()
    todo = [(one, maker) for one in _returned(maker)]
    batch.makers[maker] = file
    while todo and len(batch.parts) < _LIMIT:
        node, around = todo.pop()
        if node in batch.parts:
            continue
        batch.parts[node] = around
        todo += _behind(node, around, batch, program)
    return batch


def _returned(maker: Maker) -> Iterator[ast.expr]:
    if isinstance(maker, ast.Lambda):
        yield maker.body
        return
    yield from (one.value for one in walk_scope(maker) if isinstance(one, ast.Return) and one.value is not None)


def _behind(node: ast.expr, around: Maker, batch: Batch, program: Program) -> Iterator[tuple[ast.expr, Maker]]:
    """The expressions whose keys are those of one."""
    if isinstance(node, ast.Name):
        yield from ((one, around) for one in _bound(node.id, around, batch))
    elif isinstance(node, ast.Dict):
        inner = zip(node.keys, node.values, strict=True)
        yield from ((value, around) for key, value in inner if key is None)
    elif isinstance(node, ast.DictComp):
        yield node.generators[0].iter, around
    elif isinstance(node, ast.BinOp):
        yield from ((one, around) for one in (node.left, node.right))
    elif isinstance(node, ast.IfExp):
        yield from ((one, around) for one in (node.body, node.orelse))
    elif isinstance(node, ast.Call):
        yield from _of_call(node, around, batch, program)


def _bound(name: str, around: Maker, batch: Batch) -> Iterator[ast.expr]:
    """What a name is assigned, and what is merged into it by `update`."""
    batch.names.add((around, name))
    for node in walk_scope(around):
        if isinstance(node, ast.Assign):
            same = [one for one in node.targets if isinstance(one, ast.Name) and one.id == name]
            yield from (node.value for _ in same)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            is_same = isinstance(node.target, ast.Name) and node.target.id == name
            yield from (one for one in (node.value,) if is_same and one is not None)
        elif isinstance(node, ast.Call) and is_method(node, name, "update"):
            yield from node.args


def is_method(call: ast.Call, name: str, *methods: str) -> bool:
    """Whether a method of a name is called."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in methods:
        return False
    return isinstance(func.value, ast.Name) and func.value.id == name


def _of_call(call: ast.Call, around: Maker, batch: Batch, program: Program) -> Iterator[tuple[ast.expr, Maker]]:
    file = batch.makers[around]
    called = (program.names(file).qualified(call.func) or "").rpartition(".")[2]
    if called in _SAME_KEYS:
        given = [*call.args[:1], *(one.value for one in call.keywords if one.arg in ("data", None))]
        yield from ((one, around) for one in given)
    elif isinstance(call.func, ast.Attribute) and call.func.attr in _SAME_OBJECT:
        yield call.func.value, around
    else:
        for one in callees_of(call.func, file, program):
            batch.makers[one.function] = one.file
            yield from ((each, one.function) for each in _returned(one.function))
            # A function that returns what it was given under other values has the keys of its argument.
            read = {node.id for each in _returned(one.function) for node in walk(each) if isinstance(node, ast.Name)}
            bound = bind_call(call, one.function, Value(call, file))
            yield from (
                (value.node, around)
                for name, value in bound.items()
                if name in read and isinstance(value.node, (ast.Name, ast.Dict)) and _walks(name, one.function)
            )


def _walks(name: str, function: Maker) -> bool:
    """Whether a function goes through the items of an argument, or returns it."""
    returned = list(_returned(function))
    is_same = any(isinstance(one, ast.Name) and one.id == name for one in returned)
    return is_same or any(isinstance(one, ast.Call) and is_method(one, name, "items") for one in walk(function))
