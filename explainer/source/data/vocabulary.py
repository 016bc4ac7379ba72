"""Mappings of words or categories to codes that begin at 1, and what takes their length."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """`len(vocabulary)` of a vocabulary whose codes go from 1 to just that; `is_added_to` where something is added to it."""

    file: SourceFile
    node: ast.Call
    name: str
    is_added_to: bool


def find_lengths(program: Program) -> Iterator[Length]:
    """Every length of such a vocabulary, but for where it is filled and where something is taken from it.

    Where an object holds it, and has its length, that of the object counts.
    """
    made = [(names, statement) for file in program.parsed() for names, statement in _vocabularies(file)]
    wanted = {name for names, _ in made for name in names}
    filling = {id(node) for _, statement in made for node in walk(statement)}
    own = [one for one in _lengths(wanted, program) if id(one.node) not in filling] if made else []
    owners = {owner for one in own if (owner := _measured_class(one, program)) is not None}
    for one in own:
        if _measured_class(one, program) is None:
            yield one
    for file in program.parsed() if owners else ():
        for node in file.walk():
            if _is_length(node):
                classes = {owner for _, owner in resolver_of(program).classes_of(Value(node.args[0], file))}
                for owner in classes & owners:
                    if (found := _length(node, file, owner.name)) is not None:
                        yield found


def _lengths(names: set[str], program: Program) -> Iterator[Length]:
    for file in program.parsed():
        for node in file.walk():
            name = _name(node.args[0]) if _is_length(node) else None
            if _is_length(node) and name in names and (found := _length(node, file, name)) is not None:
                yield found


def _length(node: ast.Call, file: SourceFile, name: str) -> Length | None:
    above = file.parents.get(node)
    if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Sub):
        return None
    return Length(
        file=file, node=node, name=name, is_added_to=isinstance(above, ast.BinOp) and isinstance(above.op, ast.Add)
    )


def _measured_class(one: Length, program: Program) -> ast.ClassDef | None:
    """The class whose own length a length is: `def __len__(self): return len(self.codes)`."""
    names = program.names(one.file)
    function = names.function_of(one.node)
    is_own = function is not None and function.name == "__len__" and not one.is_added_to
    return names.class_of(one.node) if is_own else None


def _vocabularies(file: SourceFile) -> Iterator[tuple[set[str], ast.stmt]]:
    """The names of a vocabulary, and of the list that it counts, where that is one; and the statement that fills it."""
    for node in file.walk():
        if (
            isinstance(node, ast.DictComp)
            and _counts_from_one(node)
            and not isinstance(file.parents.get(node), ast.Assign)
        ):
            yield from _handed_over(node, file)
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0]
        name = _name(target)
        if name is None:
            continue
        # `vocabulary[word] = len(vocabulary) + 1`
        is_entry = isinstance(target, ast.Subscript) and _is_length_and_one(node.value, name)
        if is_entry:
            yield {name}, node
        elif _counts_from_one(node.value):
            assert isinstance(node.value, ast.DictComp)
            loop = node.value.generators[0].iter
            counted = dotted_name(loop.args[0]) if isinstance(loop, ast.Call) and loop.args else None
            yield {name, *([counted.rpartition(".")[2]] if counted else [])}, node


def _handed_over(node: ast.DictComp, file: SourceFile) -> Iterator[tuple[set[str], ast.stmt]]:
    """A vocabulary that is an argument where its object is made: the names of the fields that a class has for it."""
    call = file.parents.get(node)
    owner = dotted_name(call.func) if isinstance(call, ast.Call) and node in call.args else None
    if isinstance(call, ast.keyword) and call.arg is not None:
        yield {call.arg}, file.statement(node)
    for one in file.walk() if owner is not None and isinstance(call, ast.Call) else ():
        if isinstance(one, ast.ClassDef) and one.name == owner:
            fields = [
                each.target.id
                for each in one.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            ]
            yield {fields[call.args.index(node)]} if fields else set(), file.statement(node)  # type: ignore[union-attr]


def _counts_from_one(node: ast.expr) -> bool:
    """`{word: i for i, word in enumerate(words, 1)}`, `{word: i + 1 for i, word in enumerate(words)}`."""
    if not isinstance(node, ast.DictComp) or len(node.generators) != 1:
        return False
    loop, value = node.generators[0], node.value
    counter = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else None
    call = loop.iter
    if (
        not isinstance(counter, ast.Name)
        or not isinstance(call, ast.Call)
        or dotted_name(call.func) != "enumerate"
        or loop.ifs
    ):
        return False
    start = next(
        (one.value for one in call.keywords if one.arg == "start"), call.args[1] if len(call.args) > 1 else None
    )
    first = 0 if start is None else start.value if isinstance(start, ast.Constant) else _behind_padding(start)
    if isinstance(value, ast.Name):
        return value.id == counter.id and first == 1
    added = value.right if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) else None
    is_next = isinstance(value, ast.BinOp) and isinstance(value.left, ast.Name) and value.left.id == counter.id
    return first == 0 and is_next and isinstance(added, ast.Constant) and added.value == 1


def _behind_padding(start: ast.expr) -> int | None:
    """1 for `PAD + 1`, which leaves the code of padding out; that is 0 as a rule."""
    if isinstance(start, ast.BinOp) and isinstance(start.op, ast.Add) and isinstance(start.right, ast.Constant):
        return 1 if start.right.value == 1 and "pad" in ast.unparse(start.left).lower() else None
    return None


def _is_length_and_one(node: ast.expr, name: str) -> bool:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add) or not isinstance(node.right, ast.Constant):
        return False
    return node.right.value == 1 and _is_length(node.left) and _name(node.left.args[0]) == name


def _is_length(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and dotted_name(node.func) == "len" and len(node.args) == 1


def _name(node: ast.expr) -> str | None:
    """The last name of what is filled or measured: `codes` of `self.codes[column]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("keys", "values", "items")
    ):
        node = node.func.value
    return (dotted_name(node) or "").rpartition(".")[2] or None
