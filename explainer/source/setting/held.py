"""What a name, an attribute or an entry holds: besides what is assigned, the defaults of fields, class attributes, dictionaries.

Calls are followed with all that their parameters stand for, defaults included, so that one helper that is called twice is read
twice: `flag("A", "0")`, `flag("B", "1")`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program, module_name
from explainer.source.setting.declared import declared_values
from explainer.source.setting.flow import dictionaries_behind
from explainer.source.setting.key import walked
from explainer.source.value.binding import Value, all_parameters, bounds_of, default_of
from explainer.source.value.resolve import resolver_of

_FIELDS = ("dataclasses.field", "pydantic.Field", "attr.ib", "attrs.field")
_PROPERTIES = ("property", "functools.cached_property")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def held_by(value: Value, program: Program) -> Iterator[Value]:
    """What an expression that is a name, an attribute or an entry of a dictionary stands for; none where that is not known."""
    node = value.node
    if isinstance(node, (ast.Name, ast.Attribute)):
        found = list(resolver_of(program).behind(value))
        if not found and isinstance(node, ast.Attribute):
            found = list(_attribute(node, value, program))
        for one in found:
            yield from _elements(one, program) if one.is_element else [one] if one.pick is None else ()
    elif isinstance(node, ast.Subscript):
        yield from _entries(node.value, node.slice, value, program)
    elif isinstance(node, ast.Call):
        yield from _asked(node, value, program)


def returned_by(call: ast.Call, value: Value, program: Program, *, by: Value | None = None) -> Iterator[Value]:
    """What a function of the program returns in a call; `by` is the function where the call names it by a parameter."""
    resolver = resolver_of(program)
    named = call if by is None else ast.copy_location(ast.Call(func=by.node, args=[], keywords=[]), call)
    found = resolver.function_of(named, value if by is None else by)
    if found is None:
        return
    skip = 1 if program.names(value.file).is_call(call, "functools.partial") else 0
    for one in resolver.returns_of(found, call, value, skip):
        yield replace(one, arguments={**_defaults(found[1], found[0]), **one.arguments})


def field_default(value: Value, program: Program) -> Iterator[Value]:
    """What a record's field is where nothing is given: `field(default=...)`, or what its factory returns."""
    call = value.node
    if not isinstance(call, ast.Call) or not program.names(value.file).is_call(call, *_FIELDS):
        return
    for one in call.keywords:
        if one.arg in ("default_factory", "factory"):
            yield from _made_by(replace(value, node=one.value), program)
        elif one.arg == "default":
            yield replace(value, node=one.value)


def _made_by(factory: Value, program: Program) -> Iterator[Value]:
    """What a factory without arguments returns: a lambda, a function, `partial(read, "FREEZE", bool)`."""
    node = factory.node
    if isinstance(node, ast.Lambda):
        yield replace(factory, node=node.body)
    elif isinstance(node, ast.Call) and program.names(factory.file).is_call(node, "functools.partial") and node.args:
        yield from returned_by(node, factory, program, by=replace(factory, node=node.args[0]))
    elif isinstance(node, (ast.Name, ast.Attribute)):
        call = ast.copy_location(ast.Call(func=node, args=[], keywords=[]), node)
        yield from returned_by(call, factory, program, by=factory)


def _defaults(function: Function, file: SourceFile) -> dict[str, Value]:
    given = {name: default_of(function, name) for name in all_parameters(function)}
    return {name: Value(one, file) for name, one in given.items() if one is not None}


def _attribute(node: ast.Attribute, value: Value, program: Program) -> Iterator[Value]:
    """An attribute that no method assigns: of the object's class, of a class or a module that is named, else of that name."""
    resolver = resolver_of(program)
    owners = resolver.classes_of(replace(value, node=node.value))
    if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
        around = program.names(value.file).class_of(node)
        owners = [(value.file, around)] if around is not None else []
    named = resolver.find_class(node.value, value.file)
    found = [
        one
        for file, owner in [*owners, *([named] if named else [])]
        for one in _of_class(owner, node.attr, file, program)
    ]
    for made in resolver.constructors_of(replace(value, node=node.value)) if not found else ():
        given = made.node.keywords if isinstance(made.node, ast.Call) else ()
        found += [replace(made, node=one.value) for one in given if one.arg == node.attr]
    found = found or list(_of_module(node, value.file, program))
    if not found:
        declared = list(declared_values(node.attr, program))
        found = declared if len(declared) == 1 else []
    yield from found


def _of_class(owner: ast.ClassDef, name: str, file: SourceFile, program: Program) -> Iterator[Value]:
    """What the body of a class, or of one that it inherits, gives an attribute; what a property of that name returns."""
    is_here = False
    for one in owner.body:
        if isinstance(one, (ast.Assign, ast.AnnAssign)) and one.value is not None:
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                is_here = True
                yield Value(one.value, file, statement=one)
        elif isinstance(one, _FUNCTIONS) and one.name == name:
            is_here = True
            if any(program.names(file).qualified(mark) in _PROPERTIES for mark in one.decorator_list):
                returns = (node for node in ast.walk(one) if isinstance(node, ast.Return) and node.value is not None)
                yield from (Value(node.value, file, statement=node) for node in returns if node.value is not None)
    for base in () if is_here else owner.bases:
        above = resolver_of(program).find_class(base, file)
        if above is not None and above[1] is not owner:
            yield from _of_class(above[1], name, above[0], program)


def _of_module(node: ast.Attribute, file: SourceFile, program: Program) -> Iterator[Value]:
    """`config.FREEZE` of a module of the program."""
    module, _, last = (program.names(file).qualified(node) or "").rpartition(".")
    for one in program.parsed() if module else ():
        if module_name(one.path, program.root).endswith(module) and one.tree is not None:
            yield from (Value(each.node, one, {}, each.pick, each.is_element, each.statement)
                        for each in bounds_of(one.tree) if each.name == last)  # fmt: skip


def _asked(call: ast.Call, value: Value, program: Program) -> Iterator[Value]:
    """`getattr(args, "freeze", False)`, `cfg.get("freeze")`."""
    if program.names(value.file).qualified(call.func) == "getattr" and len(call.args) > 1:
        name = call.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            made = ast.copy_location(ast.Attribute(value=call.args[0], attr=name.value, ctx=ast.Load()), call)
            yield from _attribute(made, value, program)
    elif isinstance(call.func, ast.Attribute) and call.func.attr in ("get", "pop") and call.args:
        yield from _entries(call.func.value, call.args[0], value, program)


def _entries(mapping: ast.expr, key: ast.expr, value: Value, program: Program) -> Iterator[Value]:
    """What the dictionaries behind a mapping hold under a key; any of it where the key is not written."""
    word = key.value if isinstance(key, ast.Constant) else None
    for file, one in dictionaries_behind(mapping, value.file, program):
        pairs = [(each.arg, each.value) for each in one.keywords] if isinstance(one, ast.Call) else [
            (getattr(name, "value", None), each) for name, each in zip(one.keys, one.values, strict=True)
        ]  # fmt: skip
        yield from (Value(each, file) for name, each in pairs if name == word or word is None)
    for made in resolver_of(program).behind(replace(value, node=mapping)):
        if isinstance(made.node, ast.DictComp):
            yield replace(made, node=made.node.value)


def _elements(value: Value, program: Program, depth: int = 0) -> Iterator[Value]:
    """What a loop hands out: of `for part, is_frozen in ((encoder, a), (decoder, b))` what stands in the place that is taken."""
    node = walked(value.node)
    if isinstance(node, ast.Dict):
        yield from (Value(one, value.file, value.arguments) for one in node.values if value.pick in (1, None))
    elif isinstance(node, ast.DictComp):
        yield Value(node.value, value.file, value.arguments)
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        for one in node.elts:
            parts = one.elts if isinstance(one, (ast.Tuple, ast.List)) else None
            if isinstance(value.pick, int):
                taken = parts[value.pick] if parts is not None and value.pick < len(parts) else None
            else:
                taken = one
            yield from [Value(taken, value.file, value.arguments)] if taken is not None else ()
    elif dotted_name(node) is not None and depth < 4:
        for held in resolver_of(program).behind(Value(node, value.file, value.arguments)):
            yield from _elements(replace(held, pick=value.pick, is_element=True), program, depth + 1)
