"""Lists that forward hooks fill, with all that the program does with them: where it reads them, where it makes them empty."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.hook.addition import Addition, find_additions, is_of_forward
from explainer.source.hook.registration import method_of
from explainer.source.hook.total import find_totals
from explainer.source.name import Names, bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.callee import callees_of
from explainer.source.value.container import Container, Held, held_by
from explainer.source.value.resolve import resolver_of

READ, LAST, WINDOW, COUNTED, EMPTIED, NAMED = "read", "last", "window", "counted", "emptied", "named"
"""A list read as a whole or from its beginning, its last entry, its last few, its length against a number; made empty; or
what fills it, or gives it another name."""
_PARTS = frozenset({"setdefault", "get", "values", "items"})
_GROWS = frozenset({"append", "extend", "insert", "appendleft"})
_SHRINKS = frozenset({"clear", "pop", "popleft", "popitem", "remove", "update"})
_TO_LAST = re.compile(r"bank|memory|queue|histor|replay|past_|prev_", re.IGNORECASE)
_IN_TURN = frozenset({"zip", "enumerate", "sorted", "reversed", "list", "tuple", "iter"})
_MAX_LOADS = 6000  # names that are asked for what they hold: a larger program is left alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One expression that stands for a collection, or for a list in it, and what is done with it; `depth` 0 is all of it."""

    file: SourceFile
    node: ast.expr
    kind: str
    depth: int
    is_list: bool

    @property
    def statement(self) -> ast.stmt:
        """The statement that uses it."""
        return self.file.statement(self.node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """What hooks fill, made at one place or, where it is made anew, at several.

    `bindings` are the statements that give another value to a name of it.
    """

    additions: tuple[Addition, ...]
    containers: tuple[Container, ...]
    uses: tuple[Use, ...]
    bindings: tuple[tuple[SourceFile, ast.stmt], ...]

    @property
    def carries_graph(self) -> bool:
        """Whether a hook adds what carries a graph."""
        return any(one.carries_graph for one in self.additions)

    @property
    def is_to_last(self) -> bool:
        """Whether a program means to keep what it collects beyond a step: a window of it, a bank, a memory."""
        names = [name for one in self.containers for name in bound_names(one.statement)]
        return any(one.kind in (WINDOW, COUNTED) for one in self.uses) or any(_TO_LAST.search(one) for one in names)


def find_collections(program: Program) -> tuple[Collection, ...]:
    """Every collection of lists that forward hooks or modules fill, and every sum that a module's forward adds to."""
    return program.once(_collections)


def _collections(program: Program) -> Iterator[Collection]:
    groups: dict[frozenset[ast.expr], list[Addition]] = {}
    known: dict[ast.expr, Container] = {}
    for addition in find_additions(program):
        held = [one for one in held_by(addition.target, addition.file, program) if one.is_list]
        known |= {one.container.made: one.container for one in held}
        if held:
            groups.setdefault(frozenset(one.container.made for one in held), []).append(addition)
    for made, additions in groups.items():
        containers = tuple(one for node, one in known.items() if node in made)
        uses = tuple(_uses(made, program))
        is_own = any(isinstance(one.by, ast.ClassDef) for one in additions)
        if is_own and any(one.kind == READ and is_of_forward(one.node, one.file, program) for one in uses):
            continue
        yield Collection(
            additions=tuple(additions),
            containers=containers,
            uses=uses,
            bindings=tuple(_bindings(containers, program)),
        )
    for container, added, again, loads in find_totals(program):
        yield Collection(
            additions=tuple(added), containers=(container,), bindings=tuple(again),
            uses=tuple(
                Use(file=file, node=node, kind=READ if is_graph else NAMED, depth=0, is_list=False)
                for file, node, is_graph in loads
            ),
        )  # fmt: skip


def _uses(made: frozenset[ast.expr], program: Program) -> Iterator[Use]:
    for file, node, held in all_held(program):
        one = next((each for each in held if each.container.made in made), None)
        kind = _kind(node, one, file, program) if one is not None else NAMED
        if one is not None:
            yield Use(file=file, node=node, kind=kind, depth=one.depth, is_list=one.is_list)


_AllHeld = tuple[SourceFile, ast.expr, tuple[Held, ...]]


def all_held(program: Program) -> tuple[_AllHeld, ...]:
    """Every name and attribute of a program that stands for a list or a dictionary of lists."""
    return program.once(_all_held)


def _all_held(program: Program) -> Iterator[_AllHeld]:
    loads = [(file, node) for file in program.parsed() for node in file.walk() if _is_load(node, file)]
    if len(loads) > _MAX_LOADS:
        return
    found = ((file, node, held_by(node, file, program)) for file, node in loads if isinstance(node, ast.expr))
    yield from (one for one in found if one[2])


def _is_load(node: ast.AST, file: SourceFile) -> bool:
    if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
        return False
    above = file.parents.get(node)
    is_called = isinstance(above, ast.Call) and above.func is node
    return not is_called and dotted_name(node) not in (None, "self", "cls")


def _kind(node: ast.expr, held: Held, file: SourceFile, program: Program) -> str:
    """What is done with a collection where it stands."""
    is_list = held.is_list
    above = file.parents.get(node)
    while (part := _part(node, above, file)) is not None:
        if isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            return NAMED if _is_missing(part, file) else EMPTIED
        if is_list:
            return _picked(part.slice) if isinstance(part, ast.Subscript) else READ
        is_list = isinstance(part, ast.Subscript) or method_of(part) not in ("values", "items")
        node, above = part, file.parents.get(part)
    if isinstance(above, ast.Attribute):
        return EMPTIED if above.attr in _SHRINKS else NAMED if above.attr in _GROWS else READ
    if isinstance(above, ast.Delete):
        return EMPTIED
    if isinstance(above, ast.Call) and dotted_name(above.func) == "len":
        return COUNTED if _is_measured(above, file) else NAMED
    return NAMED if _is_handed_on(node, file, program, is_list=is_list) else READ


def _is_missing(entry: ast.Subscript, file: SourceFile) -> bool:
    """`if name not in self.outputs: self.outputs[name] = []`: an entry that is made once."""
    above = file.parents.get(file.statement(entry))
    test = above.test if isinstance(above, ast.If) else None
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn)


def _is_handed_on(node: ast.expr, file: SourceFile, program: Program, *, is_list: bool) -> bool:
    """Whether another name gets a collection: what is done with it is seen there."""
    above = file.parents.get(node)
    if isinstance(above, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Return)):
        return True
    if isinstance(above, (ast.Call, ast.keyword)):
        call = above if isinstance(above, ast.Call) else file.parents.get(above)
        if isinstance(call, ast.Call) and not is_list and dotted_name(call.func) in _IN_TURN:
            return _is_handed_on(call, file, program, is_list=False)
        return isinstance(call, ast.Call) and _is_own(call, file, program)
    return not is_list and isinstance(above, (ast.For, ast.comprehension))


def _is_own(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether a call runs a function of the program, or makes an object of a class of it."""
    is_class = resolver_of(program).find_class(call.func, file) is not None
    return is_class or bool(callees_of(call.func, file, program))


def _part(node: ast.expr, above: ast.AST | None, file: SourceFile) -> ast.Subscript | ast.Call | None:
    """What takes a part of a collection: `x[name]`, `x.values()`, `x.setdefault(name, [])`."""
    if isinstance(above, ast.Subscript) and above.value is node:
        return above
    call = file.parents.get(above) if isinstance(above, ast.Attribute) and above.attr in _PARTS else None
    return call if isinstance(call, ast.Call) and call.func is above else None


def _picked(index: ast.expr) -> str:
    if isinstance(index, ast.Slice):
        return WINDOW if index.lower is not None or index.upper is not None else READ
    return LAST if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) else READ


def _is_measured(call: ast.Call, file: SourceFile) -> bool:
    """`len(xs) > self.size`: a collection that is to hold many."""
    above = file.parents.get(call)
    others = [above.left, *above.comparators] if isinstance(above, ast.Compare) else []
    return any(one is not call and not (isinstance(one, ast.Constant) and one.value == 0) for one in others)


def _bindings(containers: tuple[Container, ...], program: Program) -> Iterator[tuple[SourceFile, ast.stmt]]:
    """The statements that bind a name of the collection again: the attribute wherever it is bound, a variable in its function."""
    for file in program.parsed():
        for node in file.walk():
            if not isinstance(node, (ast.Assign, ast.AnnAssign)):
                continue
            for one in containers:
                if node is not one.statement and _binds_same(one, node, file, program):
                    yield file, node


def _binds_same(one: Container, node: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a statement binds what the one that made a container bound."""
    pairs = ((name, bound) for name in bound_names(one.statement) for bound in bound_names(node))
    sites = ((program.names(one.file), one.statement), (program.names(file), node))
    return any(_is_same(name, bound, *sites) for name, bound in pairs)


def _is_same(name: str, bound: str, made: tuple[Names, ast.stmt], again: tuple[Names, ast.stmt]) -> bool:
    (there, statement), (here, node) = made, again
    if name.startswith("self.") and bound.startswith("self."):
        return name == bound and _are_kin(there.class_of(statement), here.class_of(node))
    if "." in name:
        return name.rpartition(".")[2] == bound.rpartition(".")[2]
    function, around = there.function_of(statement), here.function_of(node)
    is_declared = any(
        isinstance(each, (ast.Global, ast.Nonlocal)) and name in each.names for each in walk(around or node)
    )
    return name == bound and here is there and (around is function or is_declared)


def _are_kin(one: ast.ClassDef | None, other: ast.ClassDef | None) -> bool:
    """Whether two classes are one, or one is named as a base of the other."""
    if one is None or other is None or one is other:
        return one is other
    pairs = ((one, other), (other, one))
    return any(
        (dotted_name(base) or "").rpartition(".")[2] == above.name for above, below in pairs for base in below.bases
    )
