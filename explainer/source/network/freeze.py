"""Where a program switches `requires_grad` of parameters off and on: loops over them, `requires_grad_(False)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import end_of, start_of, walk
from explainer.source.value.binding import Value, all_parameters, bind_call, default_of, dominates, reaching, walk_scope
from explainer.source.value.lineage import loops_of
from explainer.source.value.resolve import resolver_of

ON_PURPOSE = re.compile(
    r"target|teacher|label|baseline|(?<![a-z])(?:old|ema)(?![a-z])|momentum|frozen|freeze|reference|ref_|_ref|anchor|pretrain|backbone|shadow|average",
    re.IGNORECASE,
)
"""Words for what is not to train."""
_LISTS = frozenset({"parameters", "named_parameters"})


@dataclass(frozen=True)
class Freeze:
    """One switch: `owner` is the module whose parameters it takes, `test` the condition on each of them where there is one.

    `statement` is the loop or the call; `flag` the statement or call that sets the flag.
    """

    file: SourceFile
    statement: ast.stmt
    flag: ast.AST
    owner: ast.expr
    is_on: bool
    test: ast.expr | None = None
    is_negated: bool = False


@lru_cache(maxsize=4)
def find_freezes(program: Program) -> tuple[Freeze, ...]:
    """Every switch of the program, in the order of its files."""
    return tuple(one for file in program.parsed() for node in file.walk() for one in _at(node, file))


def _at(node: ast.AST, file: SourceFile) -> Iterator[Freeze]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        state = _state(node.args[0] if node.args else None)
        owner = node.func.value
        if isinstance(state, bool) and not _is_looped(node, file):
            yield Freeze(file, file.statement(node), node, owner, state)
    elif isinstance(node, ast.For):
        yield from _loop(node, file)


def _state(node: ast.expr | None) -> bool | None:
    if node is None:
        return True
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, bool) else None


def _is_looped(node: ast.Call, file: SourceFile) -> bool:
    loop = file.enclosing(node, ast.For)
    return isinstance(loop, ast.For) and owner_of(loop.iter) is not None


def owner_of(iterated: ast.expr) -> ast.expr | None:
    """`model` of `model.parameters()`, also inside `enumerate`, `list` and the like."""
    if not isinstance(iterated, ast.Call):
        return None
    if isinstance(iterated.func, ast.Attribute) and iterated.func.attr in _LISTS:
        return iterated.func.value
    return owner_of(iterated.args[0]) if iterated.args and isinstance(iterated.func, ast.Name) else None


def _loop(loop: ast.For, file: SourceFile) -> Iterator[Freeze]:
    owner = owner_of(loop.iter)
    if owner is None:
        return
    for node in walk(loop):
        state: bool | None = None
        if isinstance(node, ast.Assign) and (dotted_name(node.targets[0]) or "").endswith(".requires_grad"):
            state = _state(node.value)
            if state is None and isinstance(node.value, ast.expr):
                # `p.requires_grad = "head" in name` freezes what the test does not take
                yield Freeze(file, loop, node, owner, is_on=False, test=node.value, is_negated=True)
                continue
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
            state = _state(node.args[0] if node.args else None)
        if state is not None:
            yield _conditional(loop, node, owner, file, state=state)


def _conditional(loop: ast.For, node: ast.AST, owner: ast.expr, file: SourceFile, *, state: bool) -> Freeze:
    above = file.parents.get(node)
    below: ast.AST = node
    while above is not None and above is not loop:
        if isinstance(above, ast.If):
            negated = below not in above.body
            return Freeze(file, loop, node, owner, state, above.test, negated)
        below, above = above, file.parents.get(above)
    skip = next(
        (one for one in loop.body if isinstance(one, ast.If) and any(isinstance(x, ast.Continue) for x in one.body)),
        None,
    )
    if skip is not None and skip.lineno < getattr(node, "lineno", 0):
        return Freeze(file, loop, node, owner, state, skip.test, is_negated=True)
    return Freeze(file, loop, node, owner, state)


@lru_cache(maxsize=4)
def frozen_constructors(program: Program) -> frozenset[ast.AST]:
    """The calls that make modules which the program freezes as a whole and never switches on again, in part or whole."""
    freezes = find_freezes(program)
    if any(one.is_on for one in freezes):
        return frozenset()
    resolver = resolver_of(program)
    found: set[ast.AST] = set()
    for one in freezes:
        if one.test is None and not _is_extended(one):
            found |= {made.node for made in resolver.constructors_of(Value(one.owner, one.file))}
    return frozenset(found)


def _is_extended(freeze: Freeze) -> bool:
    """Whether a part of the frozen module is assigned anew afterwards: a fresh head."""
    name = dotted_name(freeze.owner)
    return name is not None and any(
        isinstance(node, ast.Assign)
        and node.lineno > freeze.statement.lineno
        and any((dotted_name(one) or "").startswith(f"{name}.") for one in node.targets)
        for node in freeze.file.walk()
    )


def is_frozen_at(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether the last switch before the call of a module, in its function, freezes it: `trainable(critic, False)`, a loop.

    As in adversarial training, where the discriminator is frozen and thawed in each round.
    """
    name = dotted_name(call.func)
    scope = program.names(file).function_of(call) or file.tree
    if name is None or scope is None or not _has_flags(program):
        return False
    switches = [one for one in switches_in(scope, file, program) if name == one[1] or name.startswith(f"{one[1]}.")]
    before = [one for one in switches if end_of(one[0]) <= start_of(call)]
    if not before or not before[-1][2] or not dominates(before[-1][0], call, file):
        return False
    thawed = [one for one, _, is_off in switches if not is_off]
    rounds = [set(walk(loop)) for loop in loops_of(call, file)]
    return not any(one in inside for inside in rounds if before[-1][0] not in inside for one in thawed)


@lru_cache(maxsize=4)
def _has_flags(program: Program) -> bool:
    """Whether a program speaks of the flags at all: asked of every call of a module."""
    return any("requires_grad" in file.text for file in program.parsed())


@lru_cache(maxsize=256)
def switches_in(scope: ast.AST, file: SourceFile, program: Program) -> tuple[tuple[ast.stmt, str, bool], ...]:
    """The statements of a scope that switch the flags of a whole module, in order: its name, and whether it is switched off."""
    own = {
        one.statement: one
        for one in find_freezes(program)
        if one.file is file and (program.names(file).function_of(one.statement) or file.tree) is scope
    }
    found: list[tuple[ast.stmt, str, bool]] = []
    for one in own.values():
        name = dotted_name(one.owner)
        if name is not None:
            found.append((one.statement, name, not one.is_on and one.test is None))
    for node in walk_scope(scope):
        call = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        target = resolver_of(program).function_of(call, Value(call, file)) if call is not None else None
        for module, is_on in _switched(call, target[1], target[0]) if call is not None and target else ():
            found.append((file.statement(node), module, not is_on))
    return tuple(sorted(found, key=lambda one: start_of(one[0])))


def _switched(call: ast.Call, function: Function, file: SourceFile) -> Iterator[tuple[str, bool]]:
    """The modules whose flags a function sets, by the names that its caller has for them, and the state that it gives them."""
    given = bind_call(call, function, Value(call, file))
    for loop in (node for node in walk(function) if isinstance(node, ast.For)):
        owner = owner_of(loop.iter)
        root = _parameter_behind(owner, function, file) if owner is not None else None
        states = [state for node in walk(loop) if (state := flag_of(node)) is not None]
        if root is None or root not in given or len(states) != 1:
            continue
        state = states[0]
        value: ast.expr | None = state
        if isinstance(state, ast.Name):
            value = given[state.id].node if state.id in given else default_of(function, state.id)
        node = given[root].node
        parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            yield from ((name, value.value) for one in parts if (name := dotted_name(one)) is not None)


def flag_of(node: ast.AST) -> ast.expr | None:
    """What a node sets a flag to: `p.requires_grad = on`, `p.requires_grad_(on)`."""
    if isinstance(node, ast.Assign) and (dotted_name(node.targets[0]) or "").endswith(".requires_grad"):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        return node.args[0] if node.args else ast.Constant(value=True)
    return None


def _parameter_behind(owner: ast.expr, function: Function, file: SourceFile) -> str | None:
    """The parameter of a function that a module is, or is an element of."""
    name = dotted_name(owner)
    known = all_parameters(function)
    if name is None or name in known:
        return name
    found = [one for one in reaching(name, owner, file) if one.is_element]
    return next((one.node.id for one in found if isinstance(one.node, ast.Name) and one.node.id in known), None)
