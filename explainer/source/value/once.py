"""Values with a graph that are made once and read in every step: attributes of `setup` and `__init__`, names of outer scopes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.loop.repeated import is_in_step, is_run_once
from explainer.source.name import Function, dotted_name
from explainer.source.network.module import trained_constructors
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bounds_of
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_NO_RUN = frozenset(
    {"parameters", "named_parameters", "state_dict", "load_state_dict", "train", "eval", "to", "zero_grad", "modules"}
    | {
        "named_modules",
        "children",
        "named_children",
        "requires_grad_",
        "apply",
        "cuda",
        "cpu",
        "buffers",
        "named_buffers",
    }
)
_RANDOM = frozenset(
    {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "bernoulli", "multinomial", "normal", "normal_"}
    | {"uniform_", "bernoulli_", "dropout", "sample", "rsample", "random_", "exponential_", "gumbel_softmax", "random"}
    | {"next", "pop", "popleft", "read", "open", "append", "shuffle", "choice", "load"}
)
_LISTS = frozenset(
    {"list", "tuple", "dict", "set", "zip", "map", "filter", "enumerate", "sorted", "chain", "items", "values"}
)
_DEPTH = 4
_SNAPSHOTS = frozenset({"clone", "deepcopy", "copy"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """A name that one statement binds to a value made of weights, and every place that reads it.

    `owner` is the class of an attribute `self.x`, None for a plain name; `scope` the function or file of the statement.
    `spare` are the statements that hold the place: `self.x = None`.
    """

    name: str
    file: SourceFile
    scope: Function | ast.Module
    owner: ast.ClassDef | None
    statement: ast.Assign
    spare: tuple[ast.stmt, ...]
    reads: tuple[ast.expr, ...]


def find_once(program: Program) -> Iterator[Once]:
    """Every such value, of which a training step reads at least one."""
    for file in program.parsed():
        for owner in program.names(file).classes.values():
            for method in owner.body:
                if isinstance(method, _FUNCTIONS):
                    yield from _attributes(method, owner, file, program)
        for scope in (file.tree, *program.names(file).functions):
            if isinstance(scope, (ast.Module, *_FUNCTIONS)):
                yield from _outer_names(scope, file, program)


def _attributes(method: Function, owner: ast.ClassDef, file: SourceFile, program: Program) -> Iterator[Once]:
    for statement in method.body:
        name = dotted_name(statement.targets[0]) if _is_plain(statement) else None  # type: ignore[attr-defined]
        if name is None or not name.startswith("self.") or name.count(".") != 1:
            continue
        assert isinstance(statement, ast.Assign)
        if not _is_computed(statement.value) or _makes(statement.value, file, program):
            continue
        if not is_run_once(method, file, program):
            return
        found = _uses(name, statement, owner, program)
        if found is None or not any(is_in_step(one, file, program) for one in found[1]):
            continue
        spare, reads = found
        if is_made_of_weights(statement, method, file, program):
            yield Once(
                name=name, file=file, scope=method, owner=owner, statement=statement, spare=spare, reads=reads
            )  # fmt: skip


def _is_plain(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and len(statement.targets) == 1


def _uses(
    name: str, statement: ast.Assign, owner: ast.ClassDef, program: Program
) -> tuple[tuple[ast.stmt, ...], tuple[ast.expr, ...]] | None:
    """The placeholders and the reads of an attribute in its class; None where anything else binds or reads it."""
    last = name.partition(".")[2]
    resolver = resolver_of(program)
    spare: list[ast.stmt] = []
    reads: list[ast.expr] = []
    for where in program.parsed():
        for node in where.attributes.get(last, ()):
            if node is statement.targets[0]:
                continue
            around = program.names(where).class_of(node)
            if dotted_name(node) == name:
                if around is not owner:
                    if around is not None and _is_related(around, owner):
                        return None
                elif isinstance(node.ctx, ast.Load):
                    reads.append(node)
                elif _is_placeholder(where.statement(node)):
                    spare.append(where.statement(node))
                else:
                    return None
                continue
            known = resolver.classes_of(Value(node.value, where))
            if not known or any(one is owner for _, one in known):
                return None
    return tuple(spare), tuple(reads)


def _is_related(one: ast.ClassDef, other: ast.ClassDef) -> bool:
    return any(
        (dotted_name(base) or "").rpartition(".")[2] == of.name
        for each, of in ((one, other), (other, one))
        for base in each.bases
    )


def _is_placeholder(statement: ast.stmt) -> bool:
    is_none = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
    return _is_plain(statement) and is_none and statement.value.value is None  # type: ignore[attr-defined]


def _outer_names(scope: Function | ast.Module, file: SourceFile, program: Program) -> Iterator[Once]:
    """Names of a scope that functions within it read as they are."""
    if isinstance(scope, ast.Module) and _is_imported(file, program):
        return
    inside = _nodes(scope, file)
    if not any(isinstance(one, (*_FUNCTIONS, ast.Lambda)) and one is not scope for one in inside):
        return
    bound = [one.name for one in bounds_of(scope)]
    for statement in scope.body:
        target = statement.targets[0] if _is_plain(statement) else None  # type: ignore[attr-defined]
        if not isinstance(target, ast.Name) or bound.count(target.id) != 1:
            continue
        assert isinstance(statement, ast.Assign)
        reads = [
            node
            for node in inside
            if isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load)
            and _owner_of(node, target.id, scope, file) is scope
        ]  # fmt: skip
        inner = [one for one in reads if program.names(file).function_of(one) is not _function(scope)]
        is_open = any(isinstance(one, (ast.Global, ast.Nonlocal)) and target.id in one.names for one in inside)
        if not inner or is_open or len(inner) != len(reads):
            continue
        if any(is_in_step(one, file, program) for one in inner) and is_made_of_weights(statement, scope, file, program):
            yield Once(
                name=target.id, file=file, scope=scope, owner=None, statement=statement, spare=(), reads=tuple(inner)
            )  # fmt: skip


def _nodes(scope: Function | ast.Module, file: SourceFile) -> tuple[ast.AST, ...]:
    return file.nodes if isinstance(scope, ast.Module) else tuple(walk(scope))


def _function(scope: Function | ast.Module) -> Function | None:
    return None if isinstance(scope, ast.Module) else scope


def _is_imported(file: SourceFile, program: Program) -> bool:
    """Whether another file takes names from this one."""
    module = program.names(file).module
    return any(
        one is not file and any(target.rpartition(".")[0] == module or target == module for target in names.values())
        for one in program.parsed()
        if (names := program.names(one).imports)
    )


def _owner_of(node: ast.AST, name: str, scope: ast.AST, file: SourceFile) -> ast.AST | None:
    """The scope that a plain name is bound in, looked for outwards to `scope`."""
    around = file.enclosing(node, *_FUNCTIONS, ast.Lambda, ast.Module)
    while around is not None and around is not scope:
        own = all_parameters(around) if isinstance(around, (*_FUNCTIONS, ast.Lambda)) else set()
        if name in own or any(one.name == name for one in bounds_of(around)):
            return around
        around = file.enclosing(around, *_FUNCTIONS, ast.Lambda, ast.Module)
    return around


def is_made_of_weights(statement: ast.Assign, scope: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether a value goes through parameters that nothing else in a step runs, and comes out the same if computed anew.

    What a step also runs may have been meant as the weights' old value: old log-probabilities, a first embedding.
    """
    value = statement.value
    if not _computes(value, file, program) or is_without_grad(value, file, program):
        return False
    if isinstance(value, ast.Call) and getattr(value.func, "attr", getattr(value.func, "id", "")) in _SNAPSHOTS:
        return False
    found = provenance_of(program).trace(Value(value, file))
    if not found.live or _makes(value, file, program) or is_random(value, file, program):
        return False
    ran = dict(_modules(value, scope, file, program, 0))
    return all(is_trained(one, program) for one in ran) and not (ran and _runs_elsewhere(ran, statement, program))


def is_trained(made: ast.AST, program: Program, depth: int = 0) -> bool:
    """Whether an optimizer gets what a call makes, or the module that it makes it a part of."""
    if made in trained_constructors(program):
        return True
    if depth > 4:
        return False
    where = program.file_of(made)
    owner = program.names(where).class_of(made) if where is not None else None
    return owner is not None and any(
        is_trained(call, program, depth + 1)
        for file in program.parsed()
        for call in file.walk()
        if isinstance(call, ast.Call)
        and (dotted_name(call.func) or "").rpartition(".")[2] == owner.name
        and resolver_of(program).find_class(call.func, file) == (where, owner)
    )


def _is_computed(value: ast.expr) -> bool:
    """Whether an expression calls or calculates anything: the cheapest question, asked of every attribute of a program."""
    return any(isinstance(node, (ast.Call, ast.BinOp)) for node in walk(value))


def _computes(value: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether anything is computed from weights, rather than weights listed: `[p for p in net.parameters()]` is no graph."""
    for node in walk(value):
        if isinstance(node, ast.Call):
            method = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if method in _NO_RUN | _LISTS or _makes(node, file, program):
                continue
        elif not isinstance(node, ast.BinOp):
            continue
        if provenance_of(program).trace(Value(node, file)).live:
            return True
    return False


def _makes(value: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a value is a module, a parameter or an optimizer, rather than computed from one."""
    if not isinstance(value, ast.Call):
        return isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.Lambda))
    called = program.names(file).qualified(value.func) or ""
    is_library = called.startswith(("torch.nn.", "torch.optim.")) and called.rpartition(".")[2][:1].isupper()
    is_class = resolver_of(program).find_class(value.func, file) is not None
    method = value.func.attr if isinstance(value.func, ast.Attribute) else ""
    return is_library or is_class or method in _NO_RUN or method == "requires_grad_"


def is_random(node: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether anything that an expression or function runs draws, or takes something away: twice would not give the same."""
    resolver = resolver_of(program)
    for call in (one for one in walk(node) if isinstance(one, ast.Call)):
        if getattr(call.func, "attr", getattr(call.func, "id", "")) in _RANDOM:
            return True
        target = resolver.function_of(call, Value(call, file)) if depth < 3 else None
        if target is not None and is_random(target[1], target[0], program, depth + 1):
            return True
    return False


def _modules(
    node: ast.AST, scope: ast.AST, file: SourceFile, program: Program, depth: int
) -> Iterator[tuple[ast.AST, str]]:
    """The calls that made the modules which a value, or what it is computed from here, runs, each with the name it is run by."""
    resolver = resolver_of(program)
    for call in (one for one in walk(node) if isinstance(one, ast.Call)):
        if (program.names(file).qualified(call.func) or "").startswith(("torch.", "math.", "numpy.")):
            continue
        target = resolver.function_of(call, Value(call, file))
        if target is not None and depth < _DEPTH:
            yield from _modules(
                ast.Module(body=target[1].body, type_ignores=[]), target[1], target[0], program, depth + 1
            )
        elif target is None:
            for one in resolver.constructors_of(Value(call.func, file)):
                if isinstance(one.node, ast.Call):
                    yield one.node, _last(call.func)
    for layer in (one for one in walk(node) if isinstance(one, ast.Attribute) and one.attr in ("weight", "bias")):
        for one in resolver.constructors_of(Value(layer.value, file)):
            if isinstance(one.node, ast.Call):
                yield one.node, _last(layer.value)
    names = {one.id for one in walk(node) if isinstance(one, ast.Name)} if isinstance(node, ast.expr) else set()
    for bound in bounds_of(scope) if not isinstance(scope, ast.Module) and depth < _DEPTH else ():
        if bound.name in names and bound.node is not node and _reaches(bound.node, file, program):
            yield from _modules(bound.node, scope, file, program, depth + 1)


def _last(node: ast.expr) -> str:
    """The last name of an expression: `encoder` of `model.encoder`."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _reaches(node: ast.expr, file: SourceFile, program: Program) -> bool:
    return provenance_of(program).trace(Value(node, file)).live and not _makes(node, file, program)


def _runs_elsewhere(ran: Mapping[ast.AST, str], statement: ast.Assign, program: Program) -> bool:
    """Whether a step runs one of the modules besides: by a call, by a method of it, or something not known by the same name."""
    inside = set(walk(statement))
    resolver = resolver_of(program)
    for file in program.parsed():
        for call in (one for one in file.walk() if isinstance(one, ast.Call) and one not in inside):
            objects = [call.func]
            if isinstance(call.func, ast.Attribute) and call.func.attr not in _NO_RUN:
                objects.append(call.func.value)
            made = [[each.node for each in resolver.constructors_of(Value(one, file))] for one in objects]
            is_alike = not made[0] and _last(call.func) in ran.values()
            runs = is_alike or any(one in ran for each in made for one in each)
            if runs and _may_be_in_step(call, file, program) and not is_without_grad(call, file, program):
                return True
    return False


def _may_be_in_step(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether a step runs a node; what a module's `forward` does counts, whoever calls it."""
    function = program.names(file).function_of(node)
    return getattr(function, "name", "") in ("forward", "__call__", "training_step") or is_in_step(node, file, program)
