"""The optimizer is made behind the line that gives the model new parameters: it was made before, and steps those that were replaced.

`model.fc = nn.Linear(...)` or `model.fc.weight = nn.Parameter(...)`, there or in a helper, behind `AdamW(model.parameters())`, there or in the trainer that makes it;
so is `fully_shard(model)`, or `FSDP(model)`, which makes shards of the parameters. Where a later stage of the training gives it a layer,
the optimizer that has stepped already gets that too: `opt.add_param_group({"params": model.head.parameters()})`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from explainer.fix.codemod import (
    Context,
    Proposal,
    culprit_of,
    edit_of,
    insert_after,
    insert_before,
    lines_of,
    remove_statement,
)
from explainer.model.incident import IDLE_OPTIMIZER
from explainer.model.patch import Edit
from explainer.model.trace import UNOWNED
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.module import is_module
from explainer.source.place import place_of
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, reaching
from explainer.source.value.lineage import binds, block_of, reads
from explainer.source.value.resolve import resolver_of

_DEPTH = 4
ELSEWHERE = ": elsewhere"  # gradients are there, and an optimizer has other parameters
_PARTS, _SHARDED = "live_parts", "live_sharded"
_SHARDS = (
    "torch.distributed.fsdp.fully_shard",
    "torch.distributed._composable.fsdp.fully_shard",
    "torch.distributed.fsdp.FullyShardedDataParallel",
)


class Place(NamedTuple):
    """A statement, and of it the call that is meant, where one is."""

    file: SourceFile
    statement: ast.stmt
    call: ast.Call | None = None


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each optimizer that was seen to miss layers which are given to the model behind it."""
    program = context.program
    parts = {word for one in context.incident.facts if one.name == _PARTS for word in one.value.split()}
    for line in context.incident.traced:
        path = place_of(line.file, program.root) if line.kind == UNOWNED else None
        made = program.at(path, line.line) if path is not None else None
        if path is None or made is None:
            continue
        optimizers = list(_ways_to(Place(program.files[path], made), program))
        shards = list(_sharded(program)) if context.incident.fact(_SHARDED) is not None else []
        for layers in shards or _replaced(parts, program):
            for new in _ways_to(layers, program):
                for file, optimizer, _ in optimizers:
                    edits = _in_order(file, optimizer, new, shards)
                    if edits:
                        why = f"owns parameters from before {'they are sharded' if shards else 'layers are replaced'}"
                        yield Proposal(edits=edits, culprit=culprit_of(file, optimizer, why), belief=2.5)
                        return
        yield from _joined(Place(program.files[path], made), _replaced(parts, program), program)
    idle = context.incident.fact(IDLE_OPTIMIZER)
    if idle is not None and ELSEWHERE in idle.value:
        yield from _behind_new(program)


def _behind_new(program: Program) -> Iterator[Proposal]:
    """Of an optimizer whose parameters got no gradient while others did: moved behind what gives the model a layer anew."""
    for layers in _replaced(None, program):
        for made in _makers(program):
            for file, optimizer, _ in _ways_to(made, program):
                for new in _ways_to(layers, program):
                    edits = _in_order(file, optimizer, new, ())
                    if edits:
                        why = "owns parameters from before layers are replaced"
                        yield Proposal(
                            edits=edits, culprit=culprit_of(file, optimizer, why), belief=2.5, is_origin=True
                        )
                        return


def _makers(program: Program) -> Iterator[Place]:
    """The statements that make an optimizer: `AdamW(...)`, `getattr(torch.optim, name)(...)`, there or by a name for it."""
    for file in program.parsed():
        names = program.names(file)
        for call in (one for one in file.walk() if isinstance(one, ast.Call)):
            bound = reaching(call.func.id, call, file) if isinstance(call.func, ast.Name) else []
            looked_up = bound[0].node if len(bound) == 1 else call.func
            is_looked_up = (
                isinstance(looked_up, ast.Call)
                and getattr(looked_up.func, "id", "") == "getattr"
                and bool(looked_up.args)
                and names.qualified(looked_up.args[0]) == "torch.optim"
            )
            called = names.qualified(call.func) or ""
            if is_looked_up or (called.startswith("torch.optim.") and called.count(".") == 2):
                yield Place(file, file.statement(call), call)


def _joined(optimizer: Place, layers: Iterable[Place], program: Program) -> Iterator[Proposal]:
    """What a later stage makes joins the optimizer there, where that has a name: of the same function, or of the same object."""
    file, made = optimizer.file, optimizer.statement
    name = dotted_name(made.targets[0]) if isinstance(made, ast.Assign) and len(made.targets) == 1 else None
    if name is None:
        return
    for place in layers:
        names, statement = program.names(place.file), place.statement
        if place.file is not file or not isinstance(statement, ast.Assign) or made in list(block_of(statement, file)):
            continue
        is_own = name.startswith("self.") and names.class_of(statement) is names.class_of(made)
        is_near = "." not in name and names.function_of(statement) is names.function_of(made)
        if statement.lineno > made.lineno and (is_own or is_near):
            target = file.segment(statement.targets[0])
            is_weight = names.is_call(statement.value, "torch.nn.Parameter", "torch.nn.parameter.Parameter")
            given = f"[{target}]" if is_weight else f"{target}.parameters()"
            yield Proposal(
                edits=(insert_after(file, statement, f'{name}.add_param_group({{"params": {given}}})'),),
                culprit=culprit_of(file, statement, f"makes what `{name}`, which was made before, does not have"),
                belief=2.3,
                applicability="unsafe",
                because="with the optimizer's own options: which learning rate the new layers should have is the author's to say",
                title=f"Give the optimizer what is made later: `{name}.add_param_group(...)`",
            )  # fmt: skip
            return


def _sharded(program: Program) -> Iterator[Place]:
    """The statements that shard a model, the last of them first: that is the root, behind its parts."""
    found = [
        Place(file, file.statement(node), node)
        for file in program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Call) and program.names(file).is_call(node, *_SHARDS)
    ]
    return reversed(found)


def _replaced(parts: set[str] | None, program: Program) -> Iterator[Place]:
    """The statements that give a model that is there already one of the layers: not those of its own `__init__`.

    Where the layers are not known, those that a method makes anew of what `__init__` has made.
    """
    for file in program.parsed():
        for node in file.walk():
            if (
                not isinstance(node, ast.Assign)
                or getattr(program.names(file).function_of(node), "name", "") == "__init__"
            ):
                continue
            target, made = node.targets[0], Value(node.value, file)
            if parts is None:
                if _is_made_anew(target, node, file, program) and is_module(made, program):
                    yield Place(file, node)
                continue
            if isinstance(target, ast.Attribute):
                names, of_part = program.names(file), (dotted_name(target.value) or "").rpartition(".")[2] in parts
                is_weight = of_part and names.is_call(node.value, "torch.nn.Parameter", "torch.nn.parameter.Parameter")
                is_layer = target.attr in parts and is_module(made, program)
            else:
                is_weight, is_layer = False, _is_entry(target, parts) and is_module(made, program)
            if is_weight or is_layer:
                yield Place(file, node)


def _is_made_anew(target: ast.expr, statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a method of a class binds an attribute that its `__init__` binds, itself or by calling the method."""
    owner, function = program.names(file).class_of(statement), program.names(file).function_of(statement)
    init = next((one for one in owner.body if getattr(one, "name", "") == "__init__"), None) if owner else None
    name = dotted_name(target) or ""
    if init is None or function is None or not name.startswith("self."):
        return False
    calls = (dotted_name(one.func) for one in walk(init) if isinstance(one, ast.Call))
    return any(one.name == name for one in bounds_of(init)) or f"self.{function.name}" in calls


def _is_entry(target: ast.expr, parts: set[str]) -> bool:
    """Whether a layer of a sequence is replaced: `model[-1] = ...`, `model.classifier[6] = ...`, of one that has such a part."""
    if not isinstance(target, ast.Subscript) or (of := dotted_name(target.value)) is None:
        return False
    return any(one.isdigit() for one in parts) or of.rpartition(".")[2] in parts


def _ways_to(place: Place, program: Program) -> Iterator[Place]:
    """A statement, and those that call the functions it stands in, where one place alone calls each; the object's own `__init__` aside."""
    for _ in range(_DEPTH):
        yield place
        file, statement, _call = place
        function = program.names(file).function_of(statement)
        calls = resolver_of(program).calls_of(function, file) if function is not None else []
        calls = [(where, one) for where, one in calls if not _is_of_init(one, where, statement, file, program)]
        if len(calls) != 1:
            return
        place = Place(calls[0][0], calls[0][0].statement(calls[0][1]), calls[0][1])


def _is_of_init(call: ast.Call, where: SourceFile, statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a call stands in the `__init__` of the class that a statement of another method belongs to."""
    names = program.names(where)
    owner = names.class_of(call)
    is_init = getattr(names.function_of(call), "name", "") == "__init__"
    return is_init and owner is not None and owner is program.names(file).class_of(statement)


def _in_order(file: SourceFile, optimizer: ast.stmt, new: Place, shards: Sequence[Place]) -> tuple[Edit, ...]:
    """The optimizer moved behind the layers, or the layers before it, where nothing between them needs it to be as it is."""
    block = list(block_of(optimizer, file))
    held = (one for one in block if isinstance(one, ast.If) and new.file is file and new.statement in walk(one))
    layers = next(held, new.statement)
    if new.file is not file or layers not in block or block.index(layers) <= block.index(optimizer):
        return ()
    between = block[block.index(optimizer) + 1 : block.index(layers)]
    moved = _moved(optimizer, between)
    stays = [one for one in between if one not in moved]
    bound = {name for one in moved for name in binds(one)}
    if not _reads_any(bound, [*stays, layers]) and not any(_binds_any(reads(one, graph=False), stays) for one in moved):
        lines = "\n".join(lines_of(file, one) for one in moved)
        return *(remove_statement(file, one) for one in moved), insert_after(file, layers, lines)
    if any(inner is one.statement for one in shards for before in between for inner in walk(before)):
        return ()  # the parts are sharded before the root
    if isinstance(layers, (ast.Expr, ast.Assign)) and not _binds_any(reads(layers, graph=False), [optimizer, *between]):
        return remove_statement(file, layers), insert_before(file, optimizer, lines_of(file, layers))
    return _bound_before(file, optimizer, new, between)


def _moved(optimizer: ast.stmt, between: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The optimizer, and what is made of it right behind: its schedule."""
    moved, bound = [optimizer], set(binds(optimizer))
    for one in between:
        if isinstance(one, (ast.Assign, ast.AnnAssign)) and bound & reads(one, graph=False):
            moved.append(one)
            bound |= set(binds(one))
    return moved


def _bound_before(file: SourceFile, optimizer: ast.stmt, new: Place, between: Sequence[ast.stmt]) -> tuple[Edit, ...]:
    """`return shard(model), optimizer` becomes `return model, optimizer`, with `model = shard(model)` before the optimizer."""
    call = new.call
    model = call.args[0] if call is not None and call.args else None
    if call is None or not isinstance(model, ast.Name) or call is getattr(new.statement, "value", None):
        return ()
    needed = {one.id for one in walk(call) if isinstance(one, ast.Name)}
    if _binds_any(needed, [optimizer, *between]) or model.id not in reads(optimizer, graph=False):
        return ()
    return edit_of(file, call, model.id), insert_before(file, optimizer, f"{model.id} = {file.segment(call)}")


def _reads_any(names: Iterable[str], statements: Sequence[ast.stmt]) -> bool:
    return any(set(names) & reads(one, graph=False) for one in statements)


def _binds_any(names: Iterable[str], statements: Sequence[ast.stmt]) -> bool:
    return any(set(names) & set(binds(one)) for one in statements)
