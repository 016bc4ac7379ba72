"""Mappings of words or categories to codes that begin behind 0, and what takes their length.

They are counted from there, `enumerate(words, 1)`, or shifted where they are read: `rank[item] + len(SPECIAL)`.
"""

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
from explainer.source.value.integer import integer_of
from explainer.source.value.resolve import resolver_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """`len(vocabulary)` of a vocabulary whose codes begin at `first`; `is_added_to` where something is added to it.

    `shift` is the expression that says where they begin, where it is one that can be read.
    """

    file: SourceFile
    node: ast.Call
    name: str
    is_added_to: bool
    first: int
    shift: Value | None


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """The names of a vocabulary, and of the list that it counts, where that is one; and the statement that fills it."""

    names: frozenset[str]
    statement: ast.stmt
    first: int
    shift: Value | None = None


def find_lengths(program: Program) -> Iterator[Length]:
    """Every length of such a vocabulary, but for where it is filled and where something is taken from it.

    Where an object holds it, and has its length, that of the object counts. A vocabulary whose codes begin at two places
    says nothing.
    """
    filled = [one for file in program.parsed() for one in _vocabularies(file, program)]
    from_zero = [*(one for one in filled if one.first == 0), *_set_by_default(program)]
    made = [
        *(one for one in filled if one.first > 0),
        *_shifted({name for one in from_zero for name in one.names}, program),
    ]
    begins = {name: {one.first for one in made if name in one.names} for each in made for name in each.names}
    wanted = {name: one for one in made for name in one.names if len(begins[name]) == 1}
    filling = {id(node) for one in [*made, *from_zero] for node in walk(one.statement)}
    own = [one for one in _lengths(wanted, program) if id(one.node) not in filling] if wanted else []
    owners = {owner: one for one in own if (owner := _measured_class(one, program)) is not None}
    for one in own:
        if _measured_class(one, program) is None:
            yield one
    for file in program.parsed() if owners else ():
        for node in file.walk():
            if _is_length(node):
                classes = {owner for _, owner in resolver_of(program).classes_of(Value(node.args[0], file))}
                for owner in classes & owners.keys():
                    if (found := _length(node, file, owner.name, owners[owner].first, owners[owner].shift)) is not None:
                        yield found


def _lengths(wanted: dict[str, _Vocabulary], program: Program) -> Iterator[Length]:
    for file in program.parsed():
        for node in file.walk():
            name = _name(node.args[0]) if _is_length(node) else None
            if _is_length(node) and name in wanted:
                found = _length(node, file, name, wanted[name].first, wanted[name].shift)
                if found is not None:
                    yield found


def _length(node: ast.Call, file: SourceFile, name: str, first: int, shift: Value | None) -> Length | None:
    above = file.parents.get(node)
    if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Sub):
        return None
    is_added_to = isinstance(above, ast.BinOp) and isinstance(above.op, ast.Add)
    return Length(file=file, node=node, name=name, is_added_to=is_added_to, first=first, shift=shift)


def _measured_class(one: Length, program: Program) -> ast.ClassDef | None:
    """The class whose own length a length is: `def __len__(self): return len(self.codes)`."""
    names = program.names(one.file)
    function = names.function_of(one.node)
    is_own = function is not None and function.name == "__len__" and not one.is_added_to
    return names.class_of(one.node) if is_own else None


def _vocabularies(file: SourceFile, program: Program) -> Iterator[_Vocabulary]:
    """The vocabularies that a file fills with codes that it counts."""
    for node in file.walk():
        if isinstance(node, ast.DictComp) and not isinstance(file.parents.get(node), ast.Assign):
            counted = _counts_from(node, file, program)
            if counted is not None:
                yield from (
                    _Vocabulary(frozenset(names), file.statement(node), *counted) for names in _handed_over(node, file)
                )
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0]
        name = _name(target)
        if name is None:
            continue
        entry = _behind_length(node.value, name, file, program) if isinstance(target, ast.Subscript) else None
        counted = _counts_from(node.value, file, program) if isinstance(node.value, ast.DictComp) else None
        if entry is not None:  # `vocabulary[word] = len(vocabulary) + 1`
            yield _Vocabulary(frozenset({name}), node, *entry)
        elif counted is not None:
            loop = node.value.generators[0].iter  # type: ignore[attr-defined]
            of = dotted_name(loop.args[0]) if isinstance(loop, ast.Call) and loop.args else None
            yield _Vocabulary(frozenset({name, *([of.rpartition(".")[2]] if of else [])}), node, *counted)


def _set_by_default(program: Program) -> Iterator[_Vocabulary]:
    """The vocabularies that `vocabulary.setdefault(word, len(vocabulary))` fills."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault":
                name = _name(node.func.value)
                code = node.args[1] if len(node.args) > 1 else None
                if name is not None and code is not None and _is_length(code) and _name(code.args[0]) == name:
                    yield _Vocabulary(frozenset({name}), file.statement(node), 0)


def _shifted(names: set[str], program: Program) -> Iterator[_Vocabulary]:
    """The vocabularies that are counted from 0, and whose codes are moved where one is read: `rank[item] + len(SPECIAL)`."""
    for file in program.parsed() if names else ():
        for node in file.walk():
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
                continue
            for code, shift in ((node.left, node.right), (node.right, node.left)):
                name = _read_name(code)
                first = integer_of(Value(shift, file), program) if name in names else None
                if name is not None and first is not None and first > 0:
                    yield _Vocabulary(frozenset({name}), file.statement(node), first, Value(shift, file))


def _read_name(node: ast.expr) -> str | None:
    """The mapping that one code is read of: `rank[item]`, `rank.get(item, 0)`."""
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
        return _name(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        return _name(node.func.value)
    return None


def _handed_over(node: ast.DictComp, file: SourceFile) -> Iterator[set[str]]:
    """A vocabulary that is an argument where its object is made: the names of the fields that a class has for it."""
    call = file.parents.get(node)
    owner = dotted_name(call.func) if isinstance(call, ast.Call) and node in call.args else None
    if isinstance(call, ast.keyword) and call.arg is not None:
        yield {call.arg}
    for one in file.walk() if owner is not None and isinstance(call, ast.Call) else ():
        if isinstance(one, ast.ClassDef) and one.name == owner:
            fields = [
                each.target.id
                for each in one.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            ]
            yield {fields[call.args.index(node)]} if fields else set()  # type: ignore[union-attr]


def _counts_from(node: ast.DictComp, file: SourceFile, program: Program) -> tuple[int, Value | None] | None:
    """The first code of `{word: i for i, word in enumerate(words, 1)}`, `{word: i + 1 for i, word in enumerate(words)}`."""
    if len(node.generators) != 1:
        return None
    loop, value = node.generators[0], node.value
    counter = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else None
    call = loop.iter
    if (
        not isinstance(counter, ast.Name)
        or not isinstance(call, ast.Call)
        or dotted_name(call.func) != "enumerate"
        or loop.ifs
    ):
        return None
    start = next(
        (one.value for one in call.keywords if one.arg == "start"), call.args[1] if len(call.args) > 1 else None
    )
    at = Value(start, file) if start is not None else None
    first = 0 if at is None else _first(at, program)
    if isinstance(value, ast.Name) or first is None:
        return (first, at) if first is not None and isinstance(value, ast.Name) and value.id == counter.id else None
    is_next = isinstance(value, ast.BinOp) and isinstance(value.left, ast.Name) and value.left.id == counter.id
    if first != 0 or not is_next or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    added = Value(value.right, file)
    number = _first(added, program)
    return (number, added) if number is not None else None


def _first(start: Value, program: Program) -> int | None:
    """Where codes begin; `PAD + 1` is 1 where the code of padding is not known, as that is 0 as a rule."""
    node = start.node
    number = integer_of(start, program)
    if (
        number is None
        and isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add)
        and isinstance(node.right, ast.Constant)
    ):
        return 1 if node.right.value == 1 and "pad" in ast.unparse(node.left).lower() else None
    return number


def _behind_length(node: ast.expr, name: str, file: SourceFile, program: Program) -> tuple[int, Value | None] | None:
    """The first code where each is counted by what the mapping `name` has so far: `len(codes)`, `len(codes) + 1`."""
    if _is_length(node) and _name(node.args[0]) == name:
        return 0, None
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return None
    if not _is_length(node.left) or _name(node.left.args[0]) != name:
        return None
    first = _first(Value(node.right, file), program)
    return (first, Value(node.right, file)) if first is not None else None


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
