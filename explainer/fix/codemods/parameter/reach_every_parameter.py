"""Lets DistributedDataParallel wait for no gradient that never comes: a layer that is never used is frozen.

Where the line that was to use it is a copy that runs the layer beside it, that line gets the layer.

Where the live module shows that parameters were frozen after it had been wrapped, for a later stage of the training, or the
forward takes one of several branches from batch to batch or drops layers, or the loss leaves an output out on purpose, and
only there, `find_unused_parameters=True`: in the call, or where its options say `false`, in a file or a dictionary.
A key of a configuration that is all but the name of such a part is spelled as that is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of
from explainer.fix.network.idle_pooler import freeze_poolers
from explainer.fix.setting.mistyped_key import mistyped_keys
from explainer.fix.setting.unused_search import searches
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.hook.reading import COMPREHENSIONS
from explainer.source.loop.copied import copied_use
from explainer.source.network.data_parallel import Wrapping, wrappings
from explainer.source.network.layer_drop import dropped_parts
from explainer.source.network.left_out import left_out
from explainer.source.network.module import is_of_library, parts_of
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, walk_scope
from explainer.source.value.resolve import resolver_of

_DEPTH = 3  # modules within modules
_RUNS = ("forward", "training_step")
_COST = "DDP walks the graph of each step for what is unused"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each layer of a wrapped class that nothing uses, else for the wrapping of a class that branches."""
    if not context.has_failed:
        return
    for setting, name, edit in mistyped_keys(_live_names(context), context.program):
        why = f"names no part; `{name}`, which the same keys beside it name, gets no loss"
        yield Proposal(
            edits=(edit,),
            culprit=culprit_at(setting.file, setting.key or setting.span, why),
            belief=2.8,
            title=f"Spell the key as the part is called: `{name}` for `{setting.name}`",
            because="what goes by these names leaves out one that it does not know, and the part is never trained",
        )
    for wrapping in wrappings(context.program):
        frozen = list(_frozen_since(wrapping, context))
        if frozen:
            yield from frozen
            continue
        poolers = list(freeze_poolers(wrapping, context))
        if poolers and _live_names(context):
            yield from poolers
            continue
        modules = _modules(wrapping, context.program)
        found = [each for where, owner in modules for each in _in_module(wrapping, owner, where, context)]
        yield from found or poolers or _in_library(wrapping, context)


def _frozen_since(wrapping: Wrapping, context: Context) -> Iterator[Proposal]:
    """The wrapping of a module whose parameters that got no gradient were all frozen since."""
    fact = context.incident.fact("live_frozen_since")
    frozen = fact.value.split() if fact is not None else []
    if not frozen or not set(_live_names(context)) <= set(frozen):
        return
    parts = ", ".join(f"`{one}`" for one in dict.fromkeys(one.partition(".")[0] for one in frozen))
    why = f"waits for the gradients of {parts}, frozen after it was wrapped"
    for edits, culprit in searches(wrapping, why, context.program):
        yield Proposal(
            edits=edits, culprit=culprit, belief=2.5,
            title="Let DDP look for what a later stage has frozen: `find_unused_parameters=True`",
            because=f"{_COST}; wrapping the module anew for each stage saves that",
        )  # fmt: skip


def _in_module(wrapping: Wrapping, owner: ast.ClassDef, where: SourceFile, context: Context) -> Iterator[Proposal]:
    unused = list(_unused(owner, where, context))
    yield from unused
    branching = list(_branching(wrapping, owner, where, context)) if not unused else []
    yield from branching
    if not unused and not branching:
        yield from _spare(wrapping, owner, where, context)


def _live_names(context: Context) -> list[str]:
    live = context.incident.fact("live_unreduced")
    return live.value.split() if live is not None else []


def _modules(wrapping: Wrapping, program: Program) -> Iterator[tuple[SourceFile, ast.ClassDef]]:
    """The classes of what is wrapped; Accelerate prepares optimizers and loaders in the same call."""
    for where, owner in resolver_of(program).classes_of(Value(wrapping.model, wrapping.file)):
        if wrapping.accelerator is None or resolver_of(program).method(owner, "forward", where) is not None:
            yield where, owner


def _unused(owner: ast.ClassDef, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """Layers that `__init__` makes and no other method names."""
    used = _used(owner, file)
    made = next((one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    parts = list(parts_of(owner, file, context.program)) if made is not None else []
    for part in parts:
        bound = next(one for one in bounds_of(made) if one.name == f"self.{part}")
        is_frozen = isinstance(bound.node, ast.Call) and getattr(bound.node.func, "attr", "") == "requires_grad_"
        if part not in used and not is_frozen and (copied := copied_use(owner, part, parts, file)) is not None:
            yield Proposal(
                edits=(edit_of(file, copied, f"{file.segment(copied.value)}.{part}"),),
                culprit=culprit_of(file, copied, f"runs `{copied.attr}` where `{part}` is meant, which nothing uses"),
                belief=2.5,
                applicability="unsafe",
                because="the model computes something else then; older checkpoints were trained the other way",
                title=f"Use `{part}`, which is made for it",
            )
        elif part not in used and not is_frozen:
            yield Proposal(
                edits=(put_method(file, bound.node, ".requires_grad_(False)"),),
                culprit=culprit_of(
                    file, bound.statement, f"makes `{part}`, which no forward uses: it gets no gradient"
                ),
                belief=2.0,
            )


def _used(owner: ast.ClassDef, file: SourceFile) -> set[str]:
    found = set()
    for node in file.walk():
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        function = file.enclosing(node, ast.FunctionDef)
        if not (isinstance(function, ast.FunctionDef) and function.name == "__init__" and function in owner.body):
            found.add(node.attr)
    return found


def _branching(wrapping: Wrapping, owner: ast.ClassDef, where: SourceFile, context: Context) -> Iterator[Proposal]:
    parts = set(parts_of(owner, where, context.program))
    runs = [one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name in _RUNS]
    splits = any(_splits(one, parts | _walked(run, parts)) for run in runs for one in walk_scope(run))
    if not splits and not _drops(owner, where, context):
        return
    why = "expects a gradient of every parameter, also of the branch that a batch does not take"
    for edits, culprit in searches(wrapping, why, context.program):
        yield Proposal(edits=edits, culprit=culprit, belief=1.5, because=_COST)


def _drops(owner: ast.ClassDef, file: SourceFile, context: Context) -> bool:
    """Whether layers are left out from step to step, and all that got no gradient is in them, where that is known."""
    dropped = dropped_parts(owner, file, context.program)
    names = _live_names(context)
    return bool(dropped) and all(dropped & set(one.split(".")) for one in names)


def _spare(wrapping: Wrapping, owner: ast.ClassDef, where: SourceFile, context: Context) -> Iterator[Proposal]:
    """The wrapping of a class with outputs that the program's losses do not take, if all that got no gradient belongs to them."""
    begins = tuple(_left_out(owner, where, context.program))
    names = _live_names(context)
    if begins and all(one.startswith(begins) for one in names):
        parts = dict.fromkeys(one.rpartition(".")[0] for one in names or begins)
        what = ", ".join(f"`{one}`" for one in parts)
        why = f"expects a gradient of every parameter, also of {what}, which the loss leaves out"
        for edits, culprit in searches(wrapping, why, context.program):
            yield Proposal(
                edits=edits,
                culprit=culprit,
                belief=1.5 if names else 1.0,
                title="Let DDP look for what the loss leaves out: `find_unused_parameters=True`",
                because=f"{_COST}; what the loss leaves out gets no gradient, as without DDP",
            )


def _left_out(owner: ast.ClassDef, where: SourceFile, program: Program, depth: int = 0) -> Iterator[str]:
    """How the names begin of what only outputs have that nothing reads, of a class or of the parts that it runs."""
    yield from left_out(owner, where, program)
    made = resolver_of(program).method(owner, "__init__", where) if depth < _DEPTH else None
    for part in parts_of(owner, where, program) if made is not None else ():
        bound = [one.node for one in bounds_of(made[1]) if one.name == f"self.{part}"] if made is not None else []
        owners = resolver_of(program).classes_of(Value(bound[0], where)) if len(bound) == 1 else []
        if len(owners) == 1 and owners[0][1] is not owner:
            yield from (f"{part}.{one}" for one in _left_out(owners[0][1], owners[0][0], program, depth + 1))


def _in_library(wrapping: Wrapping, context: Context) -> Iterator[Proposal]:
    """Where all that got no gradient lies within a library's model, which may leave out another part in another step."""
    names = _live_names(context)
    model = Value(wrapping.model, wrapping.file)
    is_whole = is_of_library(model, context.program)
    owners = list(_modules(wrapping, context.program))
    parts = {one.partition(".")[0] for one in names}
    if not names or not (is_whole or (owners and all(_is_library_part(one, owners, context) for one in parts))):
        return
    what = ", ".join(f"`{one}`" for one in dict.fromkeys(one.rpartition(".")[0] for one in names))
    why = f"expects a gradient of every parameter, also of {what}, which the library's model left out"
    for edits, culprit in searches(wrapping, why, context.program):
        yield Proposal(
            edits=edits,
            culprit=culprit,
            belief=1.0,
            applicability="unsafe",
            title="Let DDP look for what the library's model leaves out: `find_unused_parameters=True`",
            because=f"{_COST}; a part that was left out by mistake stays untrained",
        )


def _is_library_part(part: str, owners: list[tuple[SourceFile, ast.ClassDef]], context: Context) -> bool:
    """Whether libraries alone make what the wrapped classes keep under a name."""
    resolver = resolver_of(context.program)
    found = [resolver.method(owner, "__init__", where) for where, owner in owners]
    bound = [
        Value(one.node, made[0])
        for made in found
        if made is not None
        for one in bounds_of(made[1])
        if one.name == f"self.{part}"
    ]
    return bool(bound) and all(is_of_library(one, context.program) for one in bound)


def _splits(node: ast.AST, parts: set[str]) -> bool:
    """Whether a branch runs a layer that the other way does not run, or a comprehension runs those alone that pass a test."""
    if isinstance(node, COMPREHENSIONS):
        tested = [one for one in node.generators if one.ifs and _named(one.iter, parts)]
        return any(_named(node, set(_elements(one))) for one in tested)
    if isinstance(node, ast.IfExp):
        return _named(node.body, parts) != _named(node.orelse, parts)
    if isinstance(node, ast.If):
        return _named(ast.Module(node.body, []), parts) != _named(ast.Module(node.orelse, []), parts)
    if not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Slice):
        return False
    # Of `self.encoder(x)[0]` an output is taken, not a layer.
    return bool(_named(node.value, parts)) and not any(isinstance(one, ast.Call) for one in walk(node.value))


def _walked(run: ast.FunctionDef, parts: set[str]) -> set[str]:
    """What the layers of a container are called in a loop over it: `head` of `for name, head in self.heads.items()`."""
    loops = [one for one in walk_scope(run) if isinstance(one, ast.For) and _named(one.iter, parts)]
    return {name for one in loops for name in _elements(one)}


def _elements(loop: ast.For | ast.comprehension) -> Iterator[str]:
    """The names of a loop's elements, without the key of `.items()` and the number of `enumerate`."""
    called = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    is_pair = getattr(called, "attr", getattr(called, "id", "")) in ("items", "enumerate")
    target = loop.target.elts[-1] if is_pair and isinstance(loop.target, ast.Tuple) else loop.target
    return (one.id for one in walk(target) if isinstance(one, ast.Name))


def _named(node: ast.AST, parts: set[str]) -> set[str]:
    """The layers that a node names, or runs by the name that a loop gives them, themselves or a method of theirs."""
    called = [one.func for one in walk(node) if isinstance(one, ast.Call)]
    called += [one.value for one in called if isinstance(one, ast.Attribute)]
    run = {one.id for one in called if isinstance(one, ast.Name)}
    return (run & parts) | {one.attr for one in walk(node) if isinstance(one, ast.Attribute) and one.attr in parts}
