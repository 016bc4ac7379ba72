"""How a collection that is read comes to a loss: through what functions return, to the one that goes back, and its name there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from explainer.source.file import SourceFile
from explainer.source.hook.collection import Collection, Use
from explainer.source.loop.backward import Backward, find_backwards
from explainer.source.name import Function, bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bind_call, bounds_of, walk_scope
from explainer.source.value.callee import callees_of
from explainer.source.value.lineage import lineage, reads, root_of
from explainer.source.value.resolve import resolver_of

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_DEPTH = 5
_HANDS_OUT = frozenset({"modules", "children", "values"})
_BY_OBJECT = frozenset({"__call__", "forward"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Each:
    """The objects that have a collection each: `name` for one of them, `method` what hands them out, `rest` the collection in one.

    For `layer.balance` of `for layer in self.layers`, `layer` and `balance`; `modules` for `self.modules()`, some of which lack it.
    """

    name: str
    method: str
    rest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A name of the collection in one function, or of the objects that have one each.

    `ends` follow, in it, what the functions on the way ask whether it is None.
    """

    text: str
    ends: frozenset[str] = frozenset()
    each: Each | None = None

    @property
    def needed(self) -> tuple[str, ...]:
        """The parts of the name that may be None, outer ones last."""
        return tuple(sorted({self.text.removesuffix(one) for one in self.ends}, key=len, reverse=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An expression that has what is read, on its way to a loss, and the collection's names in the function around.

    Several where it reads that of several objects. `is_known` where none was lost on the way.
    """

    node: ast.expr
    file: SourceFile
    names: tuple[Called, ...]
    is_known: bool = True


def find_ways(use: Use, collection: Collection, program: Program) -> Iterator[tuple[Reading, Backward]]:
    """How what a use reads comes to a loss: what has it in the function of the backward, with that backward."""
    names = tuple(Called(text=one) for one in _names_in(use, collection, program))
    yield from _ways(Reading(node=use.node, file=use.file, names=names), program, 0)


def _ways(reading: Reading, program: Program, depth: int) -> Iterator[tuple[Reading, Backward]]:
    file = reading.file
    function = program.names(file).function_of(reading.node)
    scope = function or file.tree
    called = [_of_each(one, reading.node, file) for one in reading.names]
    asked = tuple(replace(one, ends=one.ends | _asked(one.text, scope)) for one in called)
    here = replace(reading, names=asked)
    for backward in find_backwards(program):
        same = backward.file is file and program.names(file).function_of(backward.call) is function
        if same and _feeds(reading.node, backward.loss, backward.statement, file, program):
            yield here, backward
    if function is None or depth > _DEPTH or not _is_returned(reading.node, function, file, program):
        return
    for where, call in resolver_of(program).calls_of(function, file):
        if function.name in _BY_OBJECT or any(
            one.function is function for one in callees_of(call.func, where, program)
        ):
            outer = [_outer(one, function, (file, where), call) for one in asked]
            names = tuple(one for one in outer if one is not None)
            is_known = here.is_known and len(names) == len(outer)
            yield from _ways(Reading(node=call, file=where, names=names, is_known=is_known), program, depth + 1)


def _of_each(called: Called, node: ast.expr, file: SourceFile) -> Called:
    """The objects over which a loop around a node goes, where the collection is named by one of them."""
    root, _, rest = called.text.partition(".")
    for target, over in _loops(node, file) if rest and called.each is None else ():
        if not isinstance(target, ast.Name) or target.id != root:
            continue
        is_call = isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr in _HANDS_OUT
        name = dotted_name(over.func.value if is_call else over)  # type: ignore[attr-defined]
        if name is not None:
            method = over.func.attr if is_call else ""  # type: ignore[attr-defined]
            return Called(text=name, each=Each(name=root, method=method, rest=rest))
    return called


def _loops(node: ast.expr, file: SourceFile) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What the loops and comprehensions around a node go over, with the target of each, the innermost first."""
    for above in file.around(node):
        if isinstance(above, ast.For):
            yield above.target, above.iter
        elif isinstance(above, COMPREHENSIONS):
            yield from ((one.target, one.iter) for one in reversed(above.generators))


def _names_in(use: Use, collection: Collection, program: Program) -> Iterator[str]:
    """What the function around a use calls the whole collection: in its statement or a loop around, else anywhere in it."""
    file, function = use.file, program.names(use.file).function_of(use.node)
    made = {name for one in collection.containers for name in bound_names(one.statement)}
    around = {use.statement, *(one for one in file.around(use.node) if isinstance(one, ast.For))}
    found = [
        (one.statement in around, name)
        for one in collection.uses
        if one.depth == 0 and one.file is file and program.names(file).function_of(one.node) is function
        and (name := dotted_name(one.node)) is not None
        and ("." in name or name in made or function is None or all(each.name != name for each in bounds_of(function)))
    ]  # fmt: skip
    near = [name for is_near, name in found if is_near]
    return iter(dict.fromkeys(near or [name for _, name in found]))


def _asked(name: str, scope: ast.AST | None) -> frozenset[str]:
    """What follows the parts of a name that a function asks whether they are None, or are there at all."""
    if scope is None:
        return frozenset()
    parts = name.split(".")
    wanted = {".".join(parts[:at]) for at in range(1, len(parts) + 1)} - {"self"}
    found = {
        (asked, isinstance(node, ast.Compare))
        for node in walk(scope)
        for one in _questions(node)
        if (asked := dotted_name(one))
    }
    # `if not self.outputs` asks whether it is empty
    return frozenset(name.removeprefix(one) for one, of_none in found if one in wanted and (of_none or one != name))


def _questions(node: ast.AST) -> Sequence[ast.expr]:
    if isinstance(node, ast.Compare):
        is_none = any(isinstance(one, ast.Constant) and one.value is None for one in node.comparators)
        return [node.left] if is_none else []
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        return [node.test]
    if isinstance(node, ast.UnaryOp):
        return [node.operand] if isinstance(node.op, ast.Not) else []
    return node.values if isinstance(node, ast.BoolOp) else []


def _outer(called: Called, function: Function, files: tuple[SourceFile, SourceFile], call: ast.Call) -> Called | None:
    """The name that a collection has where a function is called; None where that is not known."""
    root, dot, rest = called.text.partition(".")
    given: ast.expr | None = None
    if root == "self" and function.args.args and function.args.args[0].arg == "self":
        given = (
            call.func.value if isinstance(call.func, ast.Attribute) and function.name not in _BY_OBJECT else call.func
        )
    elif root in all_parameters(function):
        bound = bind_call(call, function, Value(call, files[1])).get(root)
        given = bound.node if bound is not None else None
    elif any(one.name == root for one in bounds_of(function)) or files[0] is not files[1]:
        return None
    else:  # a name of the module or of the function around: there also where the call stands in that
        maker = next((one for one in files[0].around(function) if _binds(one, root)), None)
        return called if maker is None or call in set(walk(maker)) else None
    outer = dotted_name(given)
    return replace(called, text=f"{outer}{dot}{rest}") if outer is not None else None


def _binds(scope: ast.AST, name: str) -> bool:
    return isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) and (
        name in all_parameters(scope) or any(one.name == name for one in bounds_of(scope))
    )


def _is_returned(node: ast.expr, function: Function, file: SourceFile, program: Program) -> bool:
    """Whether a gradient of what a function returns passes through a node of it."""
    returns = [one for one in walk_scope(function) if isinstance(one, ast.Return) and one.value is not None]
    return any(_feeds(node, one.value, one, file, program) for one in returns if one.value is not None)


def _feeds(node: ast.expr, value: ast.expr, at: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a gradient of a value passes through a node, in the statement of the value or in one before it."""
    statement = file.statement(node)
    is_there = node in set(walk(value)) or statement in lineage(value, at, file, program)
    return is_there and _passes(node, statement, file)


def _passes(node: ast.expr, statement: ast.stmt, file: SourceFile) -> bool:
    """Whether the statement of a node hands on its gradient: no `detach()` around it, nor around the elements of it."""
    root = root_of(node)
    for above in file.around(node):
        if above is statement:
            return True
        if isinstance(above, COMPREHENSIONS):
            if not _hands_on(above, node):
                return False
        elif isinstance(above, ast.expr) and root not in reads(above):
            return False
    return True


def _hands_on(around: ast.AST, node: ast.expr) -> bool:
    """Whether the elements that a comprehension takes of a node go into what it makes."""
    generators: Sequence[ast.comprehension] = getattr(around, "generators", ())
    made = getattr(around, "elt", None) or getattr(around, "value", None)
    known: set[str] | None = None
    for one in generators:
        if node in set(walk(one.iter)) or (known is not None and known & reads(one.iter)):
            known = (known or set()) | {each.id for each in walk(one.target) if isinstance(each, ast.Name)}
    return known is None or bool(known & reads(made))
