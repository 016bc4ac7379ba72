"""The optimizer is made behind the line that gives the model new layers: it was made before, and steps those that were replaced.

`model.fc = nn.Linear(...)` or `model.fc.weight = nn.Parameter(...)`, there or in a helper, behind `AdamW(model.parameters())`, there or in the trainer that makes it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, insert_before, lines_of, remove_statement
from explainer.model.patch import Edit
from explainer.model.trace import UNOWNED
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.module import is_module
from explainer.source.place import place_of
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.lineage import binds, block_of, reads
from explainer.source.value.resolve import resolver_of

_DEPTH = 4
_PARTS = "live_parts"
Place = tuple[SourceFile, ast.stmt]


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each optimizer that was seen to miss layers which are given to the model behind it."""
    program = context.program
    parts = {word for one in context.incident.facts if one.name == _PARTS for word in one.value.split()}
    for line in context.incident.traced:
        path = place_of(line.file, program.root) if line.kind == UNOWNED else None
        made = program.at(path, line.line) if path is not None else None
        if path is None or made is None:
            continue
        optimizers = list(_ways_to((program.files[path], made), program))
        for layers in _replaced(parts, program):
            for new in _ways_to(layers, program):
                for file, optimizer in optimizers:
                    edits = _in_order(file, optimizer, new)
                    if edits:
                        why = "makes layers that the optimizer before it does not have"
                        yield Proposal(edits=edits, culprit=culprit_of(file, optimizer, why), belief=2.5)
                        return


def _replaced(parts: set[str], program: Program) -> Iterator[Place]:
    """The statements that give a model that is there already one of the layers: not those of its own `__init__`."""
    for file in program.parsed():
        for node in file.walk():
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if not isinstance(node, ast.Assign) or not isinstance(target, ast.Attribute):
                continue
            names, of_part = program.names(file), (dotted_name(target.value) or "").rpartition(".")[2] in parts
            is_weight = of_part and names.is_call(node.value, "torch.nn.Parameter", "torch.nn.parameter.Parameter")
            is_layer = target.attr in parts and is_module(Value(node.value, file), program)
            if (is_weight or is_layer) and getattr(names.function_of(node), "name", "") != "__init__":
                yield file, node


def _ways_to(place: Place, program: Program) -> Iterator[Place]:
    """A statement, and those that call the functions it stands in, where one place alone calls each."""
    file, statement = place
    for _ in range(_DEPTH):
        yield file, statement
        function = program.names(file).function_of(statement)
        calls = resolver_of(program).calls_of(function, file) if function is not None else []
        if len(calls) != 1:
            return
        file, statement = calls[0][0], calls[0][0].statement(calls[0][1])


def _in_order(file: SourceFile, optimizer: ast.stmt, new: Place) -> tuple[Edit, ...]:
    """The optimizer moved behind the layers, or the layers before it, where nothing between them needs it to be as it is."""
    block = list(block_of(optimizer, file))
    if new[0] is not file or new[1] not in block or block.index(new[1]) <= block.index(optimizer):
        return ()
    layers = new[1]
    between = block[block.index(optimizer) + 1 : block.index(layers)]
    if not _reads_any(binds(optimizer), [*between, layers]) and not _binds_any(reads(optimizer, graph=False), between):
        return remove_statement(file, optimizer), insert_after(file, layers, lines_of(file, optimizer))
    if not _binds_any(reads(layers, graph=False), [optimizer, *between]):
        return remove_statement(file, layers), insert_before(file, optimizer, lines_of(file, layers))
    return ()


def _reads_any(names: Iterable[str], statements: Sequence[ast.stmt]) -> bool:
    return any(set(names) & reads(one, graph=False) for one in statements)


def _binds_any(names: Iterable[str], statements: Sequence[ast.stmt]) -> bool:
    return any(set(names) & set(binds(one)) for one in statements)
