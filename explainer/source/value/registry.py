"""The classes and functions that a program takes out of a table by a name: `LOSSES[cfg["loss"]](...)`, `MODELS.build(name)`.

A table holds what its dictionary is written with, in a module or a class, what is stored in it, what a decorator registers
(`@register("bce")`, `@MODELS.register()`) and what a base files of the classes that derive from it (`__init_subclass__`). A field
of a record holds what the calls that make such records give it (`spec.build_optimizer(model)`). Where words of the program or of
its configuration name some of them, these alone are taken.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, find_calls, reaching
from explainer.source.value.held_member import held_members
from explainer.source.value.subclass_table import filed_by_subclass

_TAKES = frozenset({"get", "pop", "build", "create", "make", "lookup", "resolve", "instantiate", "from_config"})
_DEFINED = (ast.ClassDef, ast.FunctionDef)
Member = ast.ClassDef | Function


@dataclass(frozen=True, slots=True)
class Entry:
    """A class or function under a key of a table; the key is None where it is not known.

    `is_word` where the entry itself writes the key as a string, as `{"f1": f1}` does.
    """

    key: str | None
    file: SourceFile
    member: Member
    is_word: bool = False


def members_of(func: ast.expr, file: SourceFile, program: Program) -> tuple[tuple[SourceFile, Member], ...]:
    """What a call may run whose function is taken out of a table: `TABLE[name]`, `TABLE.get(name)`, `TABLE.build`.

    So is `getattr(models, name)` out of a module of the program, where a word names what stands in it.
    """
    if isinstance(func, ast.Name):
        taken = [one.node for one in reaching(func.id, func, file)]
        is_taken = len(taken) == 1 and isinstance(taken[0], (ast.Subscript, ast.Call))
        return members_of(taken[0], file, program) if is_taken else ()
    module = _module(func, file, program)
    if module is not None:
        members = ((one.name, one) for one in module.tree.body if isinstance(one, _DEFINED)) if module.tree else ()
        return tuple((module, one) for name, one in members if program.once(_words)[0][name])
    tables = _tables_of(func, file, program)
    entries = [one for table, one in program.once(_entries) if table in tables] if tables else []
    named = [
        one for one in entries if one.key is not None and program.once(_words)[0][one.key] > _said(one.key, entries)
    ]
    return tuple({id(one.member): (one.file, one.member) for one in named or entries}.values())


def calls_out_of_tables(member: Member, program: Program) -> list[tuple[SourceFile, ast.Call]]:
    """The calls that may run a class or function which they take out of a table."""
    return [(file, call) for file, call, one in program.once(_calls) if one is member]


def keys_of(member: Member, program: Program) -> frozenset[str]:
    """The keys under which tables of the program hold a class or function."""
    return frozenset(one.key for _, one in program.once(_entries) if one.member is member and one.key is not None)


def _calls(program: Program) -> Iterator[tuple[SourceFile, ast.Call, Member]]:
    for file, call in find_calls(program):
        above = file.parents.get(call)
        is_called = isinstance(above, ast.Call) and above.func is call
        if is_called and getattr(call.func, "attr", "") == "get":
            continue  # `TABLE.get(name)(x)` gives the name to the table alone
        for _, member in members_of(call.func, file, program):
            yield file, call, member


def _module(func: ast.expr, file: SourceFile, program: Program) -> SourceFile | None:
    """The module of the program of which `getattr(models, name)` takes something."""
    if not isinstance(func, ast.Call) or getattr(func.func, "id", "") != "getattr" or len(func.args) < 2:
        return None
    name = program.names(file).qualified(func.args[0])
    return next((one for one in program.parsed() if name and program.names(one).module == name), None)


def _said(key: str, entries: list[Entry]) -> int:
    """How often a key is written where its entries are made."""
    return sum(1 for one in entries if one.key == key and one.is_word)


def _tables_of(func: ast.expr, file: SourceFile, program: Program) -> set[str]:
    """The full names of what an expression may take something from: a table, the field of a record."""
    found = {f".{func.attr}"} if isinstance(func, ast.Attribute) else set()
    table = _table(func, file, program)
    return found if table is None else found | {table}


def _table(func: ast.expr, file: SourceFile, program: Program) -> str | None:
    """The full name of the table from which an expression takes something; None where it takes nothing from a name."""
    if isinstance(func, ast.Call):
        func = func.func
        is_taken = isinstance(func, ast.Attribute) and func.attr in _TAKES
        base = func.value if is_taken and isinstance(func, ast.Attribute) else None
    elif isinstance(func, ast.Subscript):
        base = func.value
    else:
        base = func.value if isinstance(func, ast.Attribute) and func.attr in _TAKES else None
    return _full_name(base, file, program) if base is not None else None


def _full_name(node: ast.expr, file: SourceFile, program: Program) -> str | None:
    """`losses.LOSSES` for a name of a module of the program, wherever it is imported."""
    name = dotted_name(node)
    if name is None:
        return None
    names = program.names(file)
    first, _, rest = name.partition(".")
    if first in ("self", "cls"):
        owner = names.class_of(node)
        return f"{names.module}.{owner.name}.{rest}" if owner is not None else None
    base = names.imports.get(first)
    if base is not None:
        return f"{base}.{rest}" if rest else base
    return f"{names.module}.{name}" if not rest or first in names.classes else None


def _entries(program: Program) -> Iterator[tuple[str, Entry]]:
    """Every entry of every table of the program's modules, with the table's full name, and of the fields of its records."""
    for field, file, held in held_members(program):
        for where, member in _definitions(held, file, program):
            yield f".{field}", Entry(None, where, member)
    yield from _tables(program)


def _tables(program: Program) -> Iterator[tuple[str, Entry]]:
    """Every entry of every table of the program's modules, with the table's full name."""
    for filed in filed_by_subclass(program):
        name = _full_name(filed.table, filed.base_file, program)
        if name is not None:
            yield name, Entry(filed.key, filed.file, filed.member, is_word=filed.key != filed.member.name)
    for file in program.parsed():
        module = program.names(file).module
        scopes = [("", file.tree), *((f"{owner.name}.", owner) for owner in program.names(file).classes.values())]
        for begin, bound in ((begin, one) for begin, scope in scopes if scope is not None for one in bounds_of(scope)):
            written = _written(bound.node) if not bound.fills else [(bound.key, bound.node, bound.key is not None)]
            for key, value, is_word in written:
                for where, member in _definitions(value, file, program):
                    yield f"{module}.{begin}{bound.name}", Entry(key, where, member, is_word)
        for node in file.walk():
            if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            for one in node.decorator_list:
                table = _registers(one, file, program)
                if table is not None:
                    words = [each.value for each in getattr(one, "args", ()) if isinstance(each, ast.Constant)]
                    key = next((each for each in words if isinstance(each, str)), None)
                    yield table, Entry(key or node.name, file, node, is_word=key is not None)


def _written(node: ast.expr) -> Iterator[tuple[str | None, ast.expr, bool]]:
    """The keys and values of a dictionary as it is written, and whether the key is a string of it, also `{one.__name__: one for one in (A, B)}`."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            word = getattr(key, "value", None)
            yield word, value, isinstance(word, str)
    elif isinstance(node, ast.DictComp) and isinstance(node.value, ast.Name):
        over = node.generators[0].iter
        is_by_name = isinstance(node.key, ast.Attribute) and node.key.attr == "__name__"
        for one in over.elts if isinstance(over, (ast.Tuple, ast.List, ast.Set)) else ():
            yield (dotted_name(one) or "").rpartition(".")[2] if is_by_name else None, one, False
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "dict":
        yield from ((one.arg, one.value, False) for one in node.keywords if one.arg is not None)


def _definitions(node: ast.expr, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, Member]]:
    """The class or function of the program that a name stands for."""
    name = program.names(file).qualified(node)
    if name is None:
        return
    own = program.names(file).classes.get(name)
    found = (file, own) if own is not None else program.find_class(name) or program.find_function(name)
    if found is not None:
        yield found


def _registers(decorator: ast.expr, file: SourceFile, program: Program) -> str | None:
    """The table into which a decorator puts what it stands over: `@register("x")` that stores it, `@MODELS.register("x")`."""
    func = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(func, ast.Attribute):
        return _full_name(func.value, file, program) if "regist" in func.attr else None
    target = program.find_function(program.names(file).qualified(func) or "") if isinstance(func, ast.Name) else None
    if target is None:
        return None
    where, function = target
    stores = [one for node in walk(function) if (one := _stored_in(node)) is not None]
    own = {one.name for one in bounds_of(where.tree)} if where.tree is not None else set()
    return next((_full_name(one, where, program) for one in stores if one.id in own), None)


def _stored_in(node: ast.AST) -> ast.Name | None:
    """The dictionary into which a node puts something: `TABLE[name] = one`, `TABLE.setdefault(name, one)`."""
    base: ast.AST | None = None
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        base = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault":
        base = node.func.value if len(node.args) == 2 else None
    return base if isinstance(base, ast.Name) else None


def _words(program: Program) -> Iterator[Counter[str]]:
    """How often each word is written: as a string of the program, or in its configuration files and scripts."""
    found: Counter[str] = Counter()
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found[node.value] += 1
    for text in program.texts:
        found.update(re.findall(r"[\w.-]+", text.text))
    yield found
