"""Keeps what a module stores, or a process is sent, out of the graph: `self.features = features.detach()`, `send(x.detach())`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before
from explainer.fix.text.rewrite import put_method, spell
from explainer.model.patch import Edit
from explainer.source.data.kept import is_data_set
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.loop.carried import holds_graph
from explainer.source.name import Function, dotted_name
from explainer.source.network.module import inherits_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Bound, Value, bounds_of, walk_scope
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_POOLS = ("map", "imap", "imap_unordered", "starmap", "map_async", "starmap_async", "apply", "apply_async", "submit")
_VALUES = ("detach", "item", "tolist", "shape", "device", "dtype", "data", "size")
_SENDS = frozenset({"send", "put", "put_nowait"})
_COPIES = ("copy.deepcopy", "torch.optim.swa_utils.AveragedModel")
_NO_LONGER = "right where nothing trains on it: what reads it later gets the value without its graph"
_DEPTH = 3  # of modules in modules
_OF_ALL = """for part in {model}.modules():
    if hasattr(getattr(part, "{name}", None), "detach"):
        part.{name} = part.{name}.detach()"""  # of layers in a list, or of a model whose class is not known
_COMPUTED = """for part in {model}.modules():
    if "weight" in vars(part):  # computed by {norm} in the last forward
        part.weight = part.weight.detach()"""
_OLD_NORMS = ("torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each activation that a module keeps, for each tensor that is sent, and for weight norm of the old form."""
    if not context.has_failed:
        return
    yield from _sent(context)
    yield from _returned(context)
    yield from _norms(context)
    yield from _computed(context)
    for file, function in context.program.functions():
        owner = context.program.names(file).class_of(function)
        if owner is None or function.name == "__init__" or is_data_set(owner, file, context.program):
            continue  # what a data set keeps is another matter: `compute_data_without_graph`
        for bound in bounds_of(function):
            yield from _kept(bound, function, file, context)


def _sent(context: Context) -> Iterator[Proposal]:
    for file, statement in failing_statements(context)[:1]:
        for node in walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SENDS:
                for one in node.args[:1]:
                    parts = one.elts if isinstance(one, (ast.Tuple, ast.List)) else [one]
                    live = [part for part in parts if provenance_of(context.program).trace(Value(part, file)).live]
                    if live:
                        yield Proposal(
                            edits=tuple(put_method(file, part, ".detach()") for part in live),
                            culprit=culprit_of(file, node, "sends a tensor with its graph to another process"),
                            belief=2.0,
                        )


def _returned(context: Context) -> Iterator[Proposal]:
    """What a pool's worker gives back with its graph: a function that calls no backward needs none."""
    program, found = context.program, set[ast.AST]()
    for name in _POOLS:
        for file, call in resolver_of(program).calls_named(name):
            given = call.args[0] if call.args else None
            if isinstance(given, ast.Call) and program.names(file).is_call(given, "functools.partial") and given.args:
                given = given.args[0]
            worker = program.find_function(dotted_name(given) or "") if given is not None else None
            if worker is None or worker[1] in found:
                continue
            found.add(worker[1])
            where, function = worker
            nodes = list(walk(function))
            returns = [one for one in nodes if isinstance(one, ast.Return) and one.value is not None]
            live = next((one for one in returns if one.value and holds_graph(one.value, one, where, program)), None)
            trains = any(isinstance(one, ast.Attribute) and one.attr in ("backward", "grad") for one in nodes)
            if live is not None and not trains:
                text = f"@{spell(program.names(where), 'torch.no_grad')}()"
                why = f"hands back the result of a worker of the pool in line {call.lineno}, which cannot send a graph"
                yield Proposal(
                    edits=(insert_before(where, function, text),),
                    culprit=culprit_of(where, live, why),
                    belief=1.8,
                    title="Run the worker under `no_grad`: what it gives back is data",
                    because="no gradient crosses a process boundary; the values are the same",
                )


def _norms(context: Context) -> Iterator[Proposal]:
    """`from torch.nn.utils import weight_norm` becomes the parametrization."""
    for file in context.program.parsed():
        for node in file.walk():
            is_old = isinstance(node, ast.ImportFrom) and node.module == "torch.nn.utils"
            if is_old and all(f"torch.nn.utils.{one.name}" in _OLD_NORMS for one in node.names):  # type: ignore[attr-defined]
                text = file.segment(node).replace("torch.nn.utils", "torch.nn.utils.parametrizations", 1)
                yield Proposal(
                    edits=(edit_of(file, node, text),),
                    culprit=culprit_of(
                        file, node, "takes the form that keeps a computed weight, no leaf, on the module"
                    ),
                    belief=1.5,
                    because="keys of the state dict differ; old ones are converted when they are loaded",
                )
            elif isinstance(node, ast.Call) and context.program.names(file).is_call(node, *_OLD_NORMS):
                yield from _spelt_out(node, file)


def _computed(context: Context) -> Iterator[Proposal]:
    """What the older norms have computed is detached before the copy: it is computed anew in each forward."""
    used = {
        name.rpartition(".")[2]
        for file in context.program.parsed()
        for node in file.walk()
        for name in _OLD_NORMS
        if isinstance(node, ast.Call) and context.program.names(file).is_call(node, name)
    }
    for where, statement in failing_statements(context)[:1] if used else ():
        for node in walk(statement):
            is_copy = isinstance(node, ast.Call) and context.program.names(where).is_call(node, *_COPIES)
            copied = dotted_name(node.args[0]) if is_copy and isinstance(node, ast.Call) and node.args else None
            if copied is not None:
                lines = _COMPUTED.format(model=copied, norm=" or ".join(sorted(used)))
                yield Proposal(
                    edits=(insert_before(where, statement, lines),),
                    culprit=culprit_of(where, node, "copies modules that keep a computed weight with its graph"),
                    belief=1.3,
                    title="Detach the weights that the norm has computed before the copy",
                    because="the next forward computes them anew; the parametrized form draws other vectors to begin with, and trains otherwise",
                )


def _spelt_out(node: ast.Call, file: SourceFile) -> Iterator[Proposal]:
    """`nn.utils.weight_norm(layer)` becomes `nn.utils.parametrizations.weight_norm(layer)`."""
    if isinstance(node.func, ast.Attribute):
        text = f"{file.segment(node.func.value)}.parametrizations.{node.func.attr}"
        yield Proposal(
            edits=(edit_of(file, node.func, text),),
            culprit=culprit_of(file, node, "keeps a computed weight, no leaf, on the module"),
            belief=1.5,
            because="keys of the state dict differ; old ones are converted when they are loaded",
        )


def _kept(bound: Bound, function: Function, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`self.x = activation` in a forward, or `self.xs.append(activation)`."""
    if not bound.name.startswith("self.") or bound.name.count(".") != 1:
        return
    made = context.program.names(file).qualified(bound.node.func) if isinstance(bound.node, ast.Call) else None
    if (made or "").startswith(
        "torch.optim."
    ):  # an optimizer, a schedule or an average holds weights, and is no tensor
        return
    if not provenance_of(context.program).trace(Value(bound.node, file)).live:
        return
    is_used = not bound.fills and _is_used_outside(bound, function, context.program)
    copied = list(_at_the_copy(bound, file, context)) if is_used else []
    yield from copied
    edits = _appended(bound, file) if bound.fills else _split(bound, function, file)
    if edits and not copied:
        yield Proposal(
            edits=edits,
            culprit=culprit_of(
                file, bound.statement, f"keeps an activation with its graph in `{bound.name}`, which cannot be copied"
            ),
            belief=2.0 if not is_used else 1.5,
            applicability="unsafe" if is_used else None,
            because=_NO_LONGER if is_used else None,
        )


def _is_used_outside(bound: Bound, function: Function, program: Program) -> bool:
    """Whether something else than the method that keeps it may train on an attribute: then it needs its graph until then."""
    name, own = bound.name.removeprefix("self."), set(walk(function))
    for where in program.parsed():
        for node in where.walk():
            is_read = isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)
            if not is_read or node in own or is_without_grad(node, where, program):
                continue
            above = where.parents.get(node)
            if not (isinstance(above, ast.Attribute) and above.attr in _VALUES):
                return True
    return False


def _at_the_copy(bound: Bound, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`model.attention = model.attention.detach()` before `copy.deepcopy(model)`: what is copied is the value."""
    owner = context.program.names(file).class_of(bound.statement)
    name = bound.name.removeprefix("self.")
    for where, statement in failing_statements(context)[:1] if owner is not None else ():
        for node in walk(statement):
            is_copy = isinstance(node, ast.Call) and context.program.names(where).is_call(node, *_COPIES)
            if not is_copy or not isinstance(node, ast.Call) or not node.args or owner is None:
                continue
            copied = dotted_name(node.args[0])
            classes = resolver_of(context.program).classes_of(Value(node.args[0], where))
            holders = list(dict.fromkeys(_holders(classes, owner, context.program)))
            kept = [".".join((copied, *one, name)) for one in holders] if copied is not None else []
            lines = "\n".join(f"{one} = {one}.detach()" for one in kept)
            if copied is not None and not kept and inherits_module(owner, file, context.program):
                kept = [name]
                lines = _OF_ALL.format(model=copied, name=name)
            if kept:
                yield Proposal(
                    edits=(insert_before(where, statement, lines),),
                    culprit=culprit_of(
                        file,
                        bound.statement,
                        f"keeps `{bound.name}` with its graph, which `{where.segment(node.func)}` cannot copy",
                    ),
                    belief=2.0,
                    title=f"Detach `{'`, `'.join(kept)}` before the copy",
                    because="the next forward makes it anew, with the graph that the loss is trained on",
                )


def _holders(
    classes: Sequence[tuple[SourceFile, ast.ClassDef]], owner: ast.ClassDef, program: Program, depth: int = 0
) -> Iterator[tuple[str, ...]]:
    """The attributes that lead from a module of some classes to one of another: `("encoder", "pool")`, none for itself."""
    for file, one in classes:
        if one is owner:
            yield ()
            continue
        for statement in walk(one) if depth < _DEPTH else ():
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            name = dotted_name(target) if target is not None else None
            if (
                isinstance(statement, ast.Assign)
                and name is not None
                and name.startswith("self.")
                and name.count(".") == 1
            ):
                below = resolver_of(program).classes_of(Value(statement.value, file))
                for rest in _holders(below, owner, program, depth + 1):
                    yield (name.removeprefix("self."), *rest)


def _appended(bound: Bound, file: SourceFile) -> tuple[Edit, ...]:
    return (put_method(file, bound.node, ".detach()"),) if isinstance(bound.statement, ast.Call) else ()


def _split(bound: Bound, function: Function, file: SourceFile) -> tuple[Edit, ...]:
    """A local for the rest of the method, and the attribute for whoever reads it later."""
    if not isinstance(bound.statement, ast.Assign) or len(bound.statement.targets) != 1 or bound.pick is not None:
        return ()
    if isinstance(bound.node, ast.Name):
        return (put_method(file, bound.node, ".detach()"),)
    local = bound.name.removeprefix("self.")
    used = {one.id for one in walk(function) if isinstance(one, ast.Name)}
    if local in used or local in {one.arg for one in function.args.args}:
        return ()
    reads = [
        one
        for one in walk_scope(function)
        if isinstance(one, ast.Attribute)
        and isinstance(one.ctx, ast.Load)
        and dotted_name(one) == bound.name
        and one.lineno > bound.statement.lineno
    ]
    return (
        edit_of(file, bound.statement.targets[0], local),
        insert_after(file, bound.statement, f"{bound.name} = {local}.detach()"),
        *(edit_of(file, one, local) for one in reads),
    )
