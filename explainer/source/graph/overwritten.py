"""Statements that write a copy of an entry, without its graph, over the entry: `out["h"] = out["h"].detach().cpu()`.

The container belongs to somebody else, who reads what is written: a dictionary, a list or an object that a function was given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, reaching
from explainer.source.value.resolve import resolver_of

_CUTS = frozenset(("detach", "item", "tolist", "numpy"))
_SAME_VALUES = frozenset(("cpu", "cuda", "to", "clone", "contiguous", "float", "double", "half", "bfloat16", "copy"))
_COPIES = frozenset(
    ("float", "torch.tensor", "torch.detach", "numpy.array", "numpy.asarray", "numpy.ascontiguousarray", "numpy.float32")
)  # fmt: skip
_WRAPS = frozenset(("torch.as_tensor", "torch.from_numpy", "torch.clone", "copy.copy", "tuple", "list", "dict"))
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.DictComp)
_OWN = ("self", "cls")
# What autograd itself keeps there: `p.grad = p.grad.detach()` is how gradients are put aside.
_OF_TENSORS = ("data", "grad", "requires_grad")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overwrite:
    """A statement that overwrites an entry with its copy.

    `entry` is how the entry is spelled, None where the statement overwrites all at once (`out.update(...)`); `target` what stands
    for it in the assignment, None in a `setattr`. `value` makes the copy; where that has a name already, it is the name, and `made`
    binds it. `functions` are those of the program that the copy goes through.
    """

    file: SourceFile
    statement: ast.stmt
    container: ast.expr
    entry: str | None
    target: ast.expr | None
    value: ast.expr
    made: ast.stmt
    functions: tuple[Function, ...] = ()


@dataclass(frozen=True, slots=True)
class _Origin:
    """What an expression copies, whether a graph ends on the way, and the functions of the program that it goes through."""

    node: ast.expr
    is_cut: bool = False
    functions: tuple[Function, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    """The entry that is overwritten, as `Overwrite` has it."""

    container: ast.expr
    text: str
    target: ast.expr | None = None


def find_overwrites(program: Program) -> tuple[Overwrite, ...]:
    """Every such statement of a program, but for those that write what a `self` keeps."""
    return program.once(_find_overwrites)


def _find_overwrites(program: Program) -> Iterator[Overwrite]:
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Assign):
                yield from _assigned(node, file, program)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                yield from _called(node, node.value, file, program)


def _assigned(statement: ast.Assign, file: SourceFile, program: Program) -> Iterator[Overwrite]:
    for target in statement.targets:
        is_entry = isinstance(target, ast.Subscript) or (
            isinstance(target, ast.Attribute) and target.attr not in _OF_TENSORS
        )
        if is_entry and isinstance(target, (ast.Subscript, ast.Attribute)) and _is_of_others(target):
            entry = _Entry(target.value, ast.unparse(target), target)
            yield from _overwrite(statement, entry, statement.value, file, program)


def _called(statement: ast.Expr, call: ast.Call, file: SourceFile, program: Program) -> Iterator[Overwrite]:
    """`setattr(out, name, getattr(out, name).detach())` and `out.update({key: one.detach() for key, one in out.items()})`."""
    if isinstance(call.func, ast.Name) and call.func.id == "setattr" and len(call.args) == 3:
        container, key, value = call.args
        if _is_of_others(container):
            entry = _Entry(container, f"getattr({ast.unparse(container)}, {ast.unparse(key)})")
            yield from _overwrite(statement, entry, value, file, program)
    elif isinstance(call.func, ast.Attribute) and call.func.attr == "update" and len(call.args) == 1:
        container, value = call.func.value, call.args[0]
        origin = _copied(value, file, program) if isinstance(value, ast.DictComp) else None
        if origin is not None and origin.is_cut and _is_same(origin.node, container) and _is_of_others(container):
            yield Overwrite(
                file=file, statement=statement, container=container, entry=None, target=None, value=value,
                made=statement, functions=origin.functions,
            )  # fmt: skip


def _overwrite(
    statement: ast.stmt, entry: _Entry, value: ast.expr, file: SourceFile, program: Program
) -> Iterator[Overwrite]:
    made, copied = statement, value
    bound = reaching(value.id, value, file) if isinstance(value, ast.Name) else []
    if len(bound) == 1 and isinstance(bound[0].statement, ast.Assign) and bound[0].pick is None and not bound[0].fills:
        made, copied = bound[0].statement, bound[0].node  # `kept = out["h"].detach()` before `out["h"] = kept`
    origin = _copied(copied, file, program)
    if origin.is_cut and _is_entry(origin.node, entry, file):
        yield Overwrite(
            file=file, statement=statement, container=entry.container, entry=entry.text, target=entry.target,
            value=value, made=made, functions=origin.functions,
        )  # fmt: skip


def _is_of_others(node: ast.expr) -> bool:
    """Whether what is written is no part of a `self`, nor of what a call has just made."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name) and node.id not in _OWN


def _copied(node: ast.expr, file: SourceFile, program: Program) -> _Origin:
    """What an expression takes the values of, and nothing else than that."""
    step = _step(node, file, program)
    if step is None:
        return _Origin(node)
    inner = _copied(step.node, file, program)
    return _Origin(inner.node, step.is_cut or inner.is_cut, (*step.functions, *inner.functions))


def _step(node: ast.expr, file: SourceFile, program: Program) -> _Origin | None:
    """One step of a copy: `.detach()`, `.cpu()`, `float(...)`, a comprehension over parts, a function of the program."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return _Origin(node.value, is_cut=True)
    if isinstance(node, _COMPREHENSIONS):
        return _of_parts(node, file, program)
    if not isinstance(node, ast.Call):
        return None
    called = program.names(file).qualified(node.func) or ""
    if called in _COPIES | _WRAPS and node.args:
        return _Origin(node.args[0], is_cut=called in _COPIES)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _CUTS | _SAME_VALUES:
        return _Origin(node.func.value, is_cut=node.func.attr in _CUTS)
    function = resolver_of(program).function_of(node, Value(node, file)) if len(node.args) == 1 else None
    is_cut = function is not None and _is_copy(function[1])
    return _Origin(node.args[0], is_cut=True, functions=(function[1],)) if function is not None and is_cut else None


def _is_copy(function: Function) -> bool:
    """Whether a function hands back what it is given without the graph, by all that is seen: it returns after a `detach`."""
    nodes = list(walk(function))
    cuts = (one.attr for one in nodes if isinstance(one, ast.Attribute))
    return any(isinstance(one, ast.Return) and one.value is not None for one in nodes) and not _CUTS.isdisjoint(cuts)


def _of_parts(node: ast.expr, file: SourceFile, program: Program) -> _Origin | None:
    """`[one.detach() for one in parts]` copies `parts`; so does a dictionary of items or entries under their own keys."""
    assert isinstance(node, _COMPREHENSIONS)
    loop, part = node.generators[0], node.value if isinstance(node, ast.DictComp) else node.elt
    pair = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    if len(node.generators) != 1 or (isinstance(node, ast.DictComp) and not _is_same(node.key, pair[0])):
        return None
    inner = _copied(part, file, program)
    if isinstance(inner.node, ast.Subscript) and _is_same(inner.node.slice, pair[0]):
        return _Origin(inner.node.value, inner.is_cut, inner.functions)
    is_each = isinstance(pair[-1], ast.Name) and _is_same(inner.node, pair[-1])
    return _Origin(_walked(loop.iter), inner.is_cut, inner.functions) if is_each else None


def _is_entry(node: ast.expr, entry: _Entry, file: SourceFile) -> bool:
    """Whether an expression is the entry: as it is spelled, by a name of its own, or as what a loop over the items hands out."""
    if ast.unparse(node) == entry.text:
        return True
    bound = reaching(node.id, node, file) if isinstance(node, ast.Name) else []
    if len(bound) != 1 or bound[0].fills:
        return False
    one = bound[0]
    if not one.is_element:
        return one.pick is None and ast.unparse(one.node) == entry.text
    pair = getattr(one.statement, "target", None)
    key = pair.elts[0] if isinstance(pair, ast.Tuple) and len(pair.elts) == 2 else None
    is_keyed = isinstance(entry.target, ast.Subscript) and key is not None and _is_same(entry.target.slice, key)
    return is_keyed and _is_same(_walked(one.node), entry.container)


def _walked(node: ast.expr) -> ast.expr:
    """The container of `container.items()`, `list(container.items())` and `enumerate(container)`."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "items":
            return node.func.value
        if not node.args or getattr(node.func, "id", "") not in ("list", "tuple", "enumerate"):
            return node
        node = node.args[0]
    return node


def _is_same(node: ast.AST, other: ast.AST) -> bool:
    return ast.unparse(node) == ast.unparse(other)
