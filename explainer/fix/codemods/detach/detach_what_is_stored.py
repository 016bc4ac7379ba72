"""A store of states, which one method of it fills and another hands back to a later step, keeps them without their graph.

`memory.store(who, state)` behind `model(x, memory.fetch(who))`: what the step made of the old state becomes the old state of
a later step, whose backward finds its graph gone. The method that stores detaches; where it keeps an object of a library that it
makes anew, as a cache of the layers' last keys and values, it detaches what that is made of.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.graph.detachment import detached
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, reaching
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import before, sources, statements_of
from explainer.source.value.nesting import nesting_of
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Store:
    """A statement of a method that keeps a value in an attribute of its object."""

    file: SourceFile
    owner: ast.ClassDef
    method: Function
    statement: ast.Assign
    attribute: str


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each method that stores what a step has made of what the same object handed out."""
    if not context.has_failed:
        return
    program = context.program
    for store in _stores(program):
        name = _parameter_behind(store.statement.value, store.method, store.file, program)
        if name is not None and _is_handed_out_again(name, store, program):
            why = f"keeps the graph of the step in `{store.attribute}`, which a later step goes back through"
            culprit = culprit_of(store.file, store.statement, why)
            yield Proposal(edits=(_detached(store.statement, store.file, program),), culprit=culprit, belief=1.7)
            continue
        parts = list(_made_of(store.statement.value, store.file))
        taken = {one for part in parts if (one := _root(part, store)) is not None}
        if len(taken) == 1 and _is_handed_out_again(taken.pop(), store, program):
            why = f"makes `{store.attribute}` of what the step computed, with its graph, which a later step goes back through"
            edits = tuple(put_method(store.file, part, ".detach()") for part in parts)
            yield Proposal(edits=edits, culprit=culprit_of(store.file, store.statement, why), belief=1.6)


def _stores(program: Program) -> Iterator[_Store]:
    """Every `self.states[key] = value` and `self.state = value` outside of a constructor that detaches nothing."""
    for file, method in program.functions():
        owner = program.names(file).class_of(method)
        if owner is None or method.name == "__init__" or method not in owner.body:
            continue
        for one in statements_of(method):
            if not isinstance(one, ast.Assign) or len(one.targets) != 1 or is_without_grad(one, file, program):
                continue
            target = one.targets[0]
            name = dotted_name(target.value if isinstance(target, ast.Subscript) else target)
            is_own = name is not None and name.startswith("self.") and name.count(".") == 1
            if name is not None and is_own and not any(_is_detach(node) for node in walk(one.value)):
                yield _Store(file=file, owner=owner, method=method, statement=one, attribute=name)


def _is_detach(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("detach", "data")


def _parameter_behind(value: ast.expr, method: Function, file: SourceFile, program: Program) -> str | None:
    """The parameter of a method that a value is, or is an element of: through the names and loops of the method."""
    known = all_parameters(method) - {"self"}
    todo, depth = [Value(value, file)], 0
    while todo and depth < _DEPTH:
        depth += 1
        for one in todo:
            if isinstance(one.node, ast.Name) and one.node.id in known and one.file is file:
                return one.node.id
        todo = [each for one in todo if isinstance(one.node, ast.Name) for each in resolver_of(program).behind(one)]
    return None


def _made_of(value: ast.expr, file: SourceFile, depth: int = 0) -> Iterator[ast.expr]:
    """The tensors that a new object is made of: its arguments, through names, displays and comprehensions."""
    if depth > _DEPTH:
        return
    inner: list[ast.expr] = []
    if isinstance(value, ast.Name):
        reached = reaching(value.id, value, file)
        if depth and any(
            isinstance(one, ast.For) and _of_loop(one, value.id) != value.id for one in file.around(value)
        ):
            yield value
            return
        bound = [one for one in reached if isinstance(one.statement, ast.Assign)]
        inner = [one.node for one in bound if not one.fills and one.pick is None] if len(bound) == 1 else []
    elif isinstance(value, ast.Call) and (dotted_name(value.func) or "").rpartition(".")[2][:1].isupper():
        inner = value.args
    elif isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        inner = [value.elt]
    elif isinstance(value, (ast.Tuple, ast.List)):
        inner = value.elts
    elif isinstance(value, (ast.Subscript, ast.Attribute)) and depth:
        yield value
    for one in inner:
        yield from _made_of(one, file, depth + 1)


def _root(part: ast.expr, store: _Store) -> str | None:
    """The parameter of the method that a part is taken from, through the loops of the comprehension around it."""
    node: ast.AST = part
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    name = node.id if isinstance(node, ast.Name) else None
    around = store.file.enclosing(part, ast.ListComp, ast.GeneratorExp)
    for loop in around.generators if isinstance(around, (ast.ListComp, ast.GeneratorExp)) else ():
        if name in {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}:
            name = (dotted_name(loop.iter) or "").partition(".")[0]
    known = all_parameters(store.method) - {"self"}
    for above in store.file.around(part):
        if isinstance(above, ast.For) and name not in known:
            name = _of_loop(above, name)
    return name if name in known else None


def _of_loop(loop: ast.For, name: str | None) -> str | None:
    """What hands a loop's variable out: `state` for `h` of `for key, h, c in zip(keys, *state)`; else the name as it is."""
    targets = loop.target.elts if isinstance(loop.target, (ast.Tuple, ast.List)) else [loop.target]
    at = next((place for place, one in enumerate(targets) if isinstance(one, ast.Name) and one.id == name), None)
    if at is None:
        return name
    over = loop.iter
    if isinstance(over, ast.Call) and dotted_name(over.func) == "zip":
        first = next((place for place, one in enumerate(over.args) if isinstance(one, ast.Starred)), len(over.args))
        given = over.args[min(at, first)] if over.args else over
        over = given.value if isinstance(given, ast.Starred) else given
    elif isinstance(over, ast.Call) and dotted_name(over.func) == "enumerate" and over.args:
        over = over.args[0]
    elif isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute):
        over = over.func.value
    return (dotted_name(over) or "").partition(".")[0] or None


def _is_handed_out_again(name: str, store: _Store, program: Program) -> bool:
    """Whether a caller gives the method, for a parameter, what it has made of what another method of the object returned."""
    for where, call in resolver_of(program).calls_of(store.method, store.file):
        given = dict(arguments_of(call, store.method)).get(name)
        statement = where.statement(call)
        if given is None or is_without_grad(call, where, program):
            continue
        parts = [(statement, given), *sources(given, statement, where, program)]
        returned = (
            node
            for made, part in parts
            if made is statement or before(made, statement)
            for node in walk(part)
            if (isinstance(node, ast.Call) and _hands_out(node, where, store, program)) or _is_read(node, call, store)
        )
        if any(returned) and provenance_of(program).trace(Value(given, where)).live:
            return True
    return False


def _is_read(node: ast.AST, call: ast.Call, store: _Store) -> bool:
    """Whether a node reads the attribute of the object whose method is called: `memory.cache` beside `memory.update(...)`."""
    owner = dotted_name(call.func.value) if isinstance(call.func, ast.Attribute) else None
    return isinstance(node, ast.Attribute) and dotted_name(node) == f"{owner}.{store.attribute.removeprefix('self.')}"


def _hands_out(call: ast.Call, file: SourceFile, store: _Store, program: Program) -> bool:
    """Whether a call runs another method of the class that reads the attribute."""
    target = resolver_of(program).function_of(call, Value(call, file))
    if target is None or target[1] is store.method or target[1] not in store.owner.body:
        return False
    return any(isinstance(node, ast.Attribute) and dotted_name(node) == store.attribute for node in walk(target[1]))


def _detached(statement: ast.Assign, file: SourceFile, program: Program) -> Edit:
    nesting = nesting_of(statement.value, file, program)
    if not nesting.is_container:
        return put_method(file, statement.value, ".detach()")
    return edit_of(file, statement.value, detached(nesting, file.segment(statement.value)))
