"""What makes the batches of the loop that failed, where that is code of the program: a sampler, a generator, a list of pieces."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context
from explainer.source.data.loader import LOADERS, Loader, find_loaders
from explainer.source.file import SourceFile
from explainer.source.loop.chunk import split_of, taken
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import binds, loops_of, root_of, statements_of
from explainer.source.value.resolve import resolver_of

_TORCH_SAMPLERS = ("torch.utils.data.BatchSampler", "torch.utils.data.sampler.BatchSampler")
_TRAINING = ("train_dataloader", "get_train_dataloader")
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp)
Scope = tuple[SourceFile, Function]
Walk = tuple[SourceFile, ast.For]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """What makes the batches of a loop.

    `scopes` are the functions and expressions that cut them, none of which is in sight where torch does; `call` made it, in
    `file`. `is_shared` where others call for it too, an evaluation for one; `walked` is the loop, None where a library walks it.
    """

    scopes: tuple[tuple[SourceFile, ast.AST], ...]
    file: SourceFile
    call: ast.Call | None = None
    is_shared: bool = False
    walked: Walk | None = None


def loops_round(context: Context) -> Iterator[tuple[SourceFile, ast.For | ast.While]]:
    """The loops round the lines that the traceback names, the innermost first."""
    seen: set[ast.AST] = set()
    for file, statement in failing_statements(context):
        for loop in loops_of(statement, file):
            if loop not in seen and statement is not loop:
                seen.add(loop)
                yield file, loop


def makers_of(walked: Walk, program: Program) -> Iterator[Maker]:
    """What makes the elements of a loop, seen through a loader that is given a batch sampler, or batches as its data."""
    file, loop = walked
    yield from _makers(taken(loop)[0], file, walked, program)


def makers_of_trainer(program: Program) -> Iterator[Maker]:
    """What makes the batches of the loader that a library trains from; of the only one with such where none is told."""
    loaders = [one for one in find_loaders(program) if _batches_of(one) is not None]
    told = [one for one in loaders if getattr(program.names(one.file).function_of(one.call), "name", "") in _TRAINING]
    for loader in told or (loaders if len(loaders) == 1 else []):
        yield from _makers(loader.call, loader.file, None, program)


def _makers(node: ast.expr, file: SourceFile, walked: Walk | None, program: Program) -> Iterator[Maker]:
    resolver = resolver_of(program)
    for one in (Value(node, file), *resolver.behind(Value(node, file))):
        is_split = one.node is not node and split_of(one.node, one.file, program) is not None
        if is_split or isinstance(one.node, _COMPREHENSIONS):
            yield Maker(scopes=((one.file, one.node),), file=one.file, walked=walked)
    function = resolver.function_of(node, Value(node, file)) if isinstance(node, ast.Call) else None
    if function is not None and isinstance(node, ast.Call) and _yields(function[1]):
        yield _of_function(function, node, file, walked, program)
        return
    for made in resolver.constructors_of(Value(node, file)):
        if not isinstance(made.node, ast.Call):
            continue
        if not program.names(made.file).is_call(made.node, *LOADERS):
            yield from _of_call(made.node, made.file, walked, program)
            continue
        given = _batches_of(Loader(made.file, made.node))
        if given is not None:
            yield from _given(Value(given, made.file, made.arguments), walked, program)


def _given(value: Value, walked: Walk | None, program: Program) -> Iterator[Maker]:
    """What makes the batches that a loader is given."""
    node = value.node
    function = resolver_of(program).function_of(node, value) if isinstance(node, ast.Call) else None
    if function is not None and isinstance(node, ast.Call) and _yields(function[1]):
        yield _of_function(function, node, value.file, walked, program)
        return
    for one in (value, *resolver_of(program).behind(value)):
        if isinstance(one.node, _COMPREHENSIONS) or split_of(one.node, one.file, program) is not None:
            yield Maker(scopes=((one.file, one.node),), file=one.file, walked=walked)
    for one in resolver_of(program).constructors_of(value):
        if isinstance(one.node, ast.Call):
            yield from _of_call(one.node, one.file, walked, program)


def _batches_of(loader: Loader) -> ast.expr | None:
    """What gives a loader its batches: its batch sampler; its sampler or data where it makes no batches of its own."""
    size = loader.given("batch_size", 1)
    if isinstance(size, ast.Constant) and size.value is None:
        return loader.given("sampler", 3) or loader.given("dataset", 0)
    return loader.given("batch_sampler", 4)


def _of_call(call: ast.Call, file: SourceFile, walked: Walk | None, program: Program) -> Iterator[Maker]:
    """What a class or a function of the program makes, in a call of it; torch's own batch sampler has its option alone."""
    resolver = resolver_of(program)
    if program.names(file).is_call(call, *_TORCH_SAMPLERS):
        yield Maker(scopes=(), file=file, call=call, walked=walked)
        return
    found = resolver.find_class(call.func, file)
    if found is not None:
        scopes = _methods(found[1], found[0], program)
        others = [one for one in resolver.calls_named(found[1].name) if one[1] is not call]
        if scopes:
            yield Maker(scopes=tuple(scopes), file=file, call=call, is_shared=bool(others), walked=walked)
        return
    function = resolver.function_of(call, Value(call, file))
    if function is not None:
        yield _of_function(function, call, file, walked, program)


def _of_function(target: Scope, call: ast.Call, file: SourceFile, walked: Walk | None, program: Program) -> Maker:
    others = [one for one in resolver_of(program).calls_of(target[1], target[0]) if one[1] is not call]
    scopes = (target, *_called(target, program))
    return Maker(scopes=scopes, file=file, call=call, is_shared=bool(others), walked=walked)


def _yields(function: Function) -> bool:
    return any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in walk(function))


def _methods(owner: ast.ClassDef, file: SourceFile, program: Program) -> list[Scope]:
    """The method that hands out the batches of a class, what it calls, and what fills the attributes that it reads."""
    resolver = resolver_of(program)
    start = resolver.method(owner, "__iter__", file)
    if start is None:
        return []
    found = [start, *_called(start, program)]
    read = {
        root for _, one in found for node in walk(one) if isinstance(node, ast.Attribute) and (root := root_of(node))
    }
    for method in owner.body:
        if not isinstance(method, ast.FunctionDef) or any(method is one for _, one in found):
            continue
        if any(binds(one) & read for one in statements_of(method)):
            found += [(file, method), *(one for one in _called((file, method), program) if one not in found)]
    return found


def _called(scope: Scope, program: Program, depth: int = 2) -> list[Scope]:
    """The functions of the program that one calls, and those that these call."""
    file, function = scope
    found: list[Scope] = []
    for call in [one for one in walk(function) if isinstance(one, ast.Call)]:
        target = resolver_of(program).function_of(call, Value(call, file))
        if target is not None and target[1] is not function and target not in found:
            found += [target, *(_called(target, program, depth - 1) if depth > 1 else [])]
    return found
