"""Which `torch.Generator` a draw takes its numbers of, and what else draws with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value, find_calls
from explainer.source.value.resolve import resolver_of

_GENERATORS = ("torch.Generator", "torch._C.Generator")
_SEEDS = frozenset({"manual_seed", "set_state"})  # these hand the generator back


def has_one_generator(call: ast.Call) -> bool:
    """Whether a call is given a generator by its name."""
    return any(one.arg == "generator" for one in call.keywords)


def generators_of(call: ast.Call, file: SourceFile, program: Program) -> list[ast.Call]:
    """The calls that made the generator which another call is given; none where that is not known."""
    given = next((one.value for one in call.keywords if one.arg == "generator"), None)
    if given is None:
        return []
    found = []
    for made in resolver_of(program).constructors_of(Value(given, file)):
        node: ast.AST = made.node
        while (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _SEEDS
            and isinstance(node.func.value, ast.Call)
        ):
            node = node.func.value
        if isinstance(node, ast.Call) and program.names(made.file).qualified(node.func) in _GENERATORS:
            found.append(node)
    return found


def draws_with(call: ast.Call, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The calls that are given the same generator as one: made by the same call, or an attribute of the same object."""
    made = {id(one) for one in generators_of(call, file, program)}
    name, owner = _spelled(call), program.names(file).class_of(call)
    for where, one in find_calls(program):
        if not has_one_generator(one):
            continue
        is_same = bool(made & {id(each) for each in generators_of(one, where, program)})
        is_own = name.startswith("self.") and where is file and program.names(where).class_of(one) is owner
        if is_same or (is_own and _spelled(one) == name):
            yield where, one


def _spelled(call: ast.Call) -> str:
    return next((dotted_name(one.value) or "" for one in call.keywords if one.arg == "generator"), "")
