"""The networks that a loss goes through, by the names that they have where it is computed."""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Iterator, Sequence

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.network.module import is_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bounds_of, walk_scope
from explainer.source.value.lineage import sources
from explainer.source.value.resolve import resolver_of

_DEPTH = 4
_LIBRARIES = ("torch.", "math.", "numpy.")


def share_nothing(losses: Sequence[ast.expr], at: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether each two losses, written in one statement, are known to go through other networks."""
    found = [networks_of(one, at, file, program) for one in losses]
    if any(not one for one in found):
        return False
    return not any(_meet(one, other) for one, other in itertools.combinations(found, 2))


def returned_losses(function: Function) -> tuple[ast.stmt, list[ast.expr]] | None:
    """The statement that returns a display of losses and its entries; None where a function returns anything else."""
    returned = [one for one in walk_scope(function) if isinstance(one, ast.Return)]
    made = returned[0].value if len(returned) == 1 else None
    if isinstance(made, ast.Dict):
        return returned[0], list(made.values)
    return (returned[0], list(made.elts)) if isinstance(made, (ast.Tuple, ast.List)) else None


def networks_of(node: ast.expr, at: ast.stmt, file: SourceFile, program: Program) -> frozenset[str]:
    """The networks that an expression runs, or what it is computed from in its function; empty where one is not known."""
    parts = [node, *(part for _, part in sources(node, at, file, program))]
    found = [name for part in parts for name in _run(part, file, program, 0)]
    return frozenset(name for name in found if name is not None) if None not in found else frozenset()


def _meet(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether a name of one is a name of the other, or a part of it: `self.net` and `self.net.head`."""
    return any(f"{a}.".startswith(f"{b}.") or f"{b}.".startswith(f"{a}.") for a in one for b in other)


def _run(node: ast.AST, file: SourceFile, program: Program, depth: int) -> Iterator[str | None]:
    """The networks that a node runs or hands to a function; None for what calls something that cannot be followed."""
    for call in walk(node):
        if not isinstance(call, ast.Call):
            continue
        if (program.names(file).qualified(call.func) or "").startswith(_LIBRARIES):
            continue
        for one in (call.func, *call.args, *(each.value for each in call.keywords)):
            name = dotted_name(one)
            if name is not None and name != "self" and _is_network(one, file, program):
                yield name
        yield from _inside(call, file, program, depth)


def _is_network(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether an expression stands for a module, not for one that has nothing to train: a criterion."""
    made = [one.node for one in resolver_of(program).constructors_of(Value(node, file))]
    called = [program.names(file).qualified(one.func) or "" for one in made if isinstance(one, ast.Call)]
    is_criterion = bool(called) and all(one.startswith("torch.nn.") and one.endswith("Loss") for one in called)
    return not is_criterion and is_module(Value(node, file), program)


def _inside(call: ast.Call, file: SourceFile, program: Program, depth: int) -> Iterator[str | None]:
    """The networks that the function or method behind a call runs, by their names outside of it."""
    owner, _, last = (dotted_name(call.func) or "").rpartition(".")
    func = call.func
    if not last:  # a method of a value, as in `self.net(x).mean()`; anything else is not known
        yield from () if isinstance(func, ast.Attribute) else (None,)
    elif is_module(Value(func, file), program):
        return
    elif isinstance(func, ast.Attribute) and owner != "self" and is_module(Value(func.value, file), program):
        yield owner
    elif (target := resolver_of(program).function_of(call, Value(call, file))) is None or depth >= _DEPTH:
        is_known = hasattr(builtins, last) if not owner else not owner.startswith("self")
        yield from () if is_known else (None,)
    else:
        for name in _run(ast.Module(body=target[1].body, type_ignores=[]), target[0], program, depth + 1):
            yield from (None,) if name is None else _outside(name, owner, target[1])


def _outside(name: str, owner: str, function: Function) -> Iterator[str]:
    """A name of a function as it reads where the function is called on `owner`; what is given to it is named there already."""
    first, _, rest = name.partition(".")
    if first == "self" and owner:
        yield f"{owner}.{rest}"
    elif first not in {one.name for one in bounds_of(function)} | all_parameters(function):
        yield name
