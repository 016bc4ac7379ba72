"""Policies of a program: where a loss holds the ratio of new to old probabilities, and the layers that a piece of code runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward, find_backwards
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bind_call, parameters_of
from explainer.source.value.callee import callees_of
from explainer.source.value.lineage import definitions, lineage, loop_of, reads, scope_of, sources, value_of
from explainer.source.value.resolve import resolver_of

_LIBRARIES = ("torch.", "numpy.", "math.")
_EXP = ("torch.exp",)
_LOG_PROBABILITIES = frozenset({"log_prob", "log_softmax", "cross_entropy", "logsumexp", "LogSoftmax"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """`exp(new - old)` in a loss: `new` comes from a forward of the round or function that goes back, `old` from before it.

    `region` is the innermost loop around the backward, or the function where there is none; `forwards` are the statements
    of it through which gradients reach the loss, `inner` the function, and its file, that they call where it runs the forward.
    """

    file: SourceFile
    backward: Backward
    region: ast.For | ast.While | Function
    old: ast.expr
    forwards: tuple[ast.stmt, ...]
    inner: tuple[SourceFile, Function] | None = None


def find_ratios(program: Program) -> tuple[Ratio, ...]:
    """Every ratio of probabilities that a backward of the program goes through."""
    return program.once(_find_ratios)


def _find_ratios(program: Program) -> Iterator[Ratio]:
    for backward in find_backwards(program):
        file = backward.file
        region = loop_of(backward.statement, file) or program.names(file).function_of(backward.call)
        if region is None:
            continue
        inside = set(walk(region)) - {region}
        lines = [one for one in lineage(backward.loss, backward.statement, file, program) if one in inside]
        for one in (*lines, backward.statement):
            for new, old in _differences(one, file, program):
                if _is_fresh(new, one, inside, file, program) and _is_older(old, one, inside, file, program):
                    own = resolver_of(program).function_of(new, Value(new, file)) if isinstance(new, ast.Call) else None
                    yield Ratio(file=file, backward=backward, region=region, old=old, forwards=tuple(lines), inner=own)


def takes_ratio(program: Program) -> bool:
    """Whether a program takes `exp(a - b)` anywhere, as losses do with the log-probabilities of two policies."""
    return any(program.once(_ratio_calls))


def _ratio_calls(program: Program) -> Iterator[bool]:
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and any(_difference(node, file.statement(node), file, program)):
                yield True
                return


def _is_fresh(node: ast.expr, at: ast.stmt, inside: set[ast.AST], file: SourceFile, program: Program) -> bool:
    """Whether an expression is a log-probability of what the region's own statements compute with layers."""
    lines = [node, *(value for one, value in sources(node, at, file, program) if one in inside)]
    runs = any(layers_of(one, file, program) for one in lines)
    return runs and any(takes_log_probability(one, file, program) for one in lines)


def _is_older(node: ast.expr, at: ast.stmt, inside: set[ast.AST], file: SourceFile, program: Program) -> bool:
    """Whether a value comes from before the region: no statement of it computes with layers what the value is made of."""
    scope = scope_of(at, file, program)
    todo, seen = [(node, at)], set[ast.AST]()
    while todo and scope is not None:
        part, place = todo.pop()
        if part in seen:
            continue
        seen.add(part)
        if layers_of(part, file, program):
            return False
        for name in reads(part, graph=False):
            made = [one for one in definitions(name, place, scope) if one in inside]
            todo += [(value, one) for one in made if (value := value_of(one, name)) is not None]
    return bool(reads(node))


def _differences(statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`new, old` of each `exp(new - old)` of a statement, or of a function of the program that it calls."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)):
        return
    for call in (node for node in walk(statement) if isinstance(node, ast.Call)):
        yield from _difference(call, statement, file, program)
        target = resolver_of(program).function_of(call, Value(call, file))
        if target is None:
            continue
        given = {**_spread(call, target[1], file), **bind_call(call, target[1], Value(call, file))}
        for inner in (node for node in walk(target[1]) if isinstance(node, ast.Call)):
            for new, old in _difference(inner, target[0].statement(inner), *target[:1], program):
                pair = [given[one.id].node for one in (new, old) if isinstance(one, ast.Name) and one.id in given]
                if len(pair) == 2:
                    yield pair[0], pair[1]
                elif (kept := _handed(old, target[1], given)) is not None and _runs(new, inner, target[0], program):
                    yield call, kept


def _spread(call: ast.Call, function: Function, file: SourceFile) -> dict[str, Value]:
    """What a call spreads over parameters, as a whole for each of them: `batch` of `loss(agent, *batch)`."""
    at = next((at for at, one in enumerate(call.args) if isinstance(one, ast.Starred)), None)
    one = call.args[at] if at is not None else None
    if not isinstance(one, ast.Starred):
        return {}
    names = [each for each in parameters_of(function) if each not in ("self", "cls")]
    return dict.fromkeys(names[at:], Value(one.value, file))


def _runs(new: ast.expr, at: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether a function computes a value with layers itself."""
    lines = [new, *(value for _, value in sources(new, file.statement(at), file, program))]
    return any(layers_of(one, file, program) for one in lines)


def _handed(old: ast.expr, function: Function, given: Mapping[str, Value]) -> ast.expr | None:
    """The argument that a function reads the old ones of, as they are: `batch` of `batch["logp"]`."""
    names = reads(old)
    bound = {one.id for one in walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return given[name].node if len(names) == 1 and (name := min(names)) in given and name not in bound else None


def _difference(
    call: ast.Call, at: ast.stmt, file: SourceFile, program: Program
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`a, b` of `(a - b).exp()` and `torch.exp(a - b)`, also where the difference has a name."""
    is_function = program.names(file).is_call(call, *_EXP)
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "exp" and not call.args
    if not is_function and not is_method:
        return
    power = call.args[0] if is_function and call.args else getattr(call.func, "value", None)
    scope = scope_of(at, file, program)
    if isinstance(power, ast.Name) and scope is not None:
        found = [value_of(one, power.id) for one in definitions(power.id, at, scope)]
        power = found[0] if len(found) == 1 else None
    if isinstance(power, ast.BinOp) and isinstance(power.op, ast.Sub):
        yield power.left, power.right


@lru_cache(maxsize=4096)
def layers_of(node: ast.AST, file: SourceFile, program: Program) -> frozenset[ast.AST]:
    """The calls that made the layers which a piece of code runs: itself, in a function or method, in a module's forward."""
    found = set(_layers(node, file, program))
    for function in functions_run(node, file, program):
        where = program.file_of(function)
        found |= set(_layers(function, where, program)) if where is not None else set()
    return frozenset(found)


def _layers(node: ast.AST, file: SourceFile, program: Program) -> Iterator[ast.AST]:
    for call in (one for one in walk(node) if isinstance(one, ast.Call)):
        called = program.names(file).qualified(call.func) or ""
        if called.startswith(_LIBRARIES) or _makes_module(call, file, program):
            continue
        for made in _constructors(call, file, program):
            name = program.names(made.file).qualified(getattr(made.node, "func", None)) or ""
            if made.node is not call and name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper():
                yield made.node


def _constructors(call: ast.Call, file: SourceFile, program: Program) -> list[Value]:
    """What made the module that is called; of `self.agent.actor` what the agent's class makes its `actor` of."""
    resolver = resolver_of(program)
    found = resolver.constructors_of(Value(call.func, file))
    if found or not isinstance(call.func, ast.Attribute):
        return found
    for where, owner in resolver.classes_of(Value(call.func.value, file)):
        value = program.names(where).attribute_value(owner, call.func.attr)
        found += resolver.constructors_of(Value(value, where)) if value is not None else []
    return found


def _makes_module(call: ast.Call, file: SourceFile, program: Program) -> bool:
    return resolver_of(program).find_class(call.func, file) is not None


def _run_by(call: ast.Call, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, ast.AST]]:
    """The functions of the program that a call runs; of a module its `forward`."""
    resolver = resolver_of(program)
    if _makes_module(call, file, program):
        return
    for one in callees_of(call.func, file, program):
        yield one.file, one.function
    for where, owner in resolver.classes_of(Value(call.func, file)):
        method = resolver.method(owner, "forward", where)
        if method is not None:
            yield method


@lru_cache(maxsize=4096)
def functions_run(node: ast.AST, file: SourceFile, program: Program) -> frozenset[ast.AST]:
    """The functions of the program that a piece of code runs, itself or in what it runs."""
    found: set[ast.AST] = set()
    todo = [(file, node)]
    while todo:
        where, one = todo.pop()
        for call in (each for each in walk(one) if isinstance(each, ast.Call)):
            for target in _run_by(call, where, program):
                if target[1] not in found:
                    found.add(target[1])
                    todo.append(target)
    return frozenset(found)


def takes_log_probability(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether a piece of code computes log-probabilities, itself or in what it runs."""
    return any(
        getattr(call.func, "attr", getattr(call.func, "id", "")) in _LOG_PROBABILITIES
        for one in (node, *functions_run(node, file, program))
        for call in walk(one)
        if isinstance(call, ast.Call)
    )
