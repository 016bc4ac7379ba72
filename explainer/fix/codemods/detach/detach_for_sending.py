"""What a worker hands to another process is detached there: the graph of a tensor cannot be sent, and its values alone are meant.

`{name: old[name] - p for name, p in model.named_parameters()}` becomes `{... - p.detach() ...}` where a pool's function returns it,
`rows.append(choice.log_prob(action))` gets its `.detach()` where the function fills what it returns. So do the parts of what
`pipe.send(...)` or `queue.put(...)` is given. A queue sends in a thread of its own, whose traceback names no line of the program:
then every `put` is asked what it is given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.graph.detachment import PUTS
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import definitions
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_SENDS = frozenset(
    ("map", "imap", "imap_unordered", "starmap", "apply", "map_async", "apply_async", "starmap_async", "submit")
)
_PUTS = frozenset(("put", "put_nowait"))
_HANDS_OVER = _PUTS | {"send"}
_FEEDS = "_feed"  # of multiprocessing.Queue
_PARAMETERS = frozenset(("parameters", "named_parameters"))
_WITHOUT_GRAPH = frozenset(("detach", "data", "grad", "item", "tolist", "numpy", "shape", "size", "numel", "dtype"))
_SAID = "refusing to serialize non-leaf tensor"
_DEPTH = 3
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.DictComp)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each function that the failing line gives to a pool, and that returns tensors with a graph; for what it sends itself."""
    if _SAID not in message_of(context):
        return
    seen: set[Function] = set()
    told: set[ast.Call] = set()
    for file, call in (*_calls_at_crash(context), *_calls_of_feeder(context)):
        func = call.func
        if isinstance(func, ast.Attribute) and call not in told:
            told.add(call)
            if func.attr in _HANDS_OVER:
                yield from _sent(call, file, context.program)
            for where, function in _functions(call, file, context.program) if func.attr in _SENDS else ():
                if function not in seen:
                    seen.add(function)
                    yield from _proposed(where, _returned(function, where, context.program))


def _calls_at_crash(context: Context) -> Iterator[tuple[SourceFile, ast.Call]]:
    for file, statement in crash_places(context):
        yield from ((file, one) for one in walk(statement) if isinstance(one, ast.Call))


def _calls_of_feeder(context: Context) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The calls that put into queues, where a queue's own thread has failed."""
    frames = [frame for one in context.incident.exceptions if _SAID in one.message for frame in one.frames]
    if any(one.function == _FEEDS for one in frames):
        for name in sorted(_PUTS):
            yield from resolver_of(context.program).calls_named(name)


def _proposed(file: SourceFile, found: Iterable[ast.expr]) -> Iterator[Proposal]:
    parts = list(dict.fromkeys(found))
    if parts:
        yield Proposal(
            edits=tuple(put_method(file, one, ".detach()") for one in parts),
            culprit=culprit_of(file, parts[0], "has a graph, which cannot be sent to another process"),
            belief=2.0,
        )


def _sent(call: ast.Call, file: SourceFile, program: Program) -> Iterator[Proposal]:
    """What in the arguments of a pipe's or a queue's call has a graph, or in what a function of the program returns for it."""
    function = program.names(file).function_of(call)
    for one in call.args[:1] if function is not None else ():
        target = resolver_of(program).function_of(one, Value(one, file)) if isinstance(one, ast.Call) else None
        if target is not None:
            yield from _proposed(target[0], _returned(target[1], target[0], program))
        else:
            yield from _proposed(file, _parts(Value(one, file), file.statement(call), function, program, 0))  # type: ignore[arg-type]


def _functions(call: ast.Call, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, Function]]:
    """The program's functions that a call of a pool is given, also by `functools.partial`."""
    for node in (part for one in call.args[:1] for part in walk(one)):
        if isinstance(node, (ast.Name, ast.Attribute)):
            asked = ast.copy_location(ast.Call(func=node, args=[], keywords=[]), node)
            target = resolver_of(program).function_of(asked, Value(node, file))
            if target is not None:
                yield target


def _returned(function: Function, file: SourceFile, program: Program) -> Iterator[ast.expr]:
    for node in walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield from _parts(Value(node.value, file), node, function, program, 0)


def _parts(given: Value, at: ast.stmt, function: Function, program: Program, depth: int) -> Iterator[ast.expr]:
    """What in a value has a graph: in displays and comprehensions, in the arguments of an object, behind a name."""
    node, file = given.node, given.file
    if isinstance(node, (ast.Tuple, ast.List)):
        inner = list(node.elts)
    elif isinstance(node, ast.Dict):
        inner = list(node.values)
    elif isinstance(node, _COMPREHENSIONS):
        yield from _of_parameters(node)
        inner = [
            one
            for part in node.generators
            for one in walk(part.iter)
            if isinstance(one, ast.Name) and _is_filled(definitions(one.id, at, function))
        ]
    elif isinstance(node, ast.Call) and _makes_object(node, file, program):
        inner = [*node.args, *(one.value for one in node.keywords)]
    elif isinstance(node, ast.Name) and depth < _DEPTH:
        made = definitions(node.id, at, function)
        value = made[0].value if len(made) == 1 and isinstance(made[0], ast.Assign) else None
        if isinstance(value, (ast.Tuple, ast.List, ast.Dict, *_COMPREHENSIONS)) or _is_filled(made):
            yield from _bound(made, function, file, program, depth)
        elif provenance_of(program).trace(given).live:
            yield node
        return
    else:
        if provenance_of(program).trace(given).live:
            yield node
        return
    for one in inner:
        yield from _parts(Value(one, file), at, function, program, depth)


def _is_filled(made: Sequence[ast.stmt]) -> bool:
    """Whether a name is a container that statements put parts into."""
    return any(True for one in made for _ in _filled(one))


def _filled(statement: ast.stmt) -> Iterator[ast.expr]:
    """What a statement puts into a container: `rows.append(x)`, `rows["x"].append(x)`, `rows["x"] = x`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in PUTS:
        yield from call.args
    elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        yield statement.value


def _bound(
    made: Sequence[ast.stmt], function: Function, file: SourceFile, program: Program, depth: int
) -> Iterator[ast.expr]:
    """What has a graph in a container that statements make; of one that they fill none where the worker trains by itself."""
    trains = any(isinstance(one, ast.Attribute) and one.attr in ("backward", "grad") for one in walk(function))
    for statement in () if trains and _is_filled(made) else made:
        begins = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        for one in (statement.value,) if begins and isinstance(statement, ast.Assign) else _filled(statement):
            yield from _parts(Value(one, file), statement, function, program, depth + 1)


def _makes_object(call: ast.Call, file: SourceFile, program: Program) -> bool:
    return resolver_of(program).find_class(call.func, file) is not None or getattr(call.func, "id", "") in (
        "dict",
        "list",
        "tuple",
    )


def _of_parameters(node: ast.ListComp | ast.GeneratorExp | ast.DictComp) -> Iterator[ast.expr]:
    """The parameter that a comprehension over them reads in what it gives, unless it is detached there."""
    value = node.value if isinstance(node, ast.DictComp) else node.elt
    for part in node.generators:
        over = part.iter
        if not isinstance(over, ast.Call) or getattr(over.func, "attr", "") not in _PARAMETERS:
            continue
        target = part.target.elts[-1] if isinstance(part.target, ast.Tuple) else part.target
        name = target.id if isinstance(target, ast.Name) else None
        taken = {one.value for one in walk(value) if isinstance(one, ast.Attribute) and one.attr in _WITHOUT_GRAPH}
        yield from (one for one in walk(value) if isinstance(one, ast.Name) and one.id == name and one not in taken)
