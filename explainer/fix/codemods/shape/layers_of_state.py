"""A recurrent layer's first state has the axis of its layers: `torch.zeros(rnn.num_layers, batch, hidden)`, twice that both ways."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.recurrent import RECURRENT, first_size
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 8
_LAYERED = re.compile(r"Expected hidden(?:\[\d\])? size \((\d+), (\d+), (\d+)\), got \[(\d+), (\d+), (\d+)\]")
_FLAT = re.compile(r"For batched 3-D input, hx (?:and cx )?should also be 3-D but got")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit where the failing line gives a layer a state of fewer layers than it has, or without their axis."""
    yield from _of_fewer_layers(context)
    yield from _without_layers(context)


def _of_fewer_layers(context: Context) -> Iterator[Proposal]:
    """A state whose first size is not the number of layers, twice that for both directions."""
    found = _LAYERED.search(message_of(context))
    wanted, got = (int(found[1]), int(found[4])) if found is not None else (0, 0)
    if found is None or wanted == got or found.groups()[1:3] != found.groups()[4:]:
        return
    for file, statement in list(raised_at(context))[:1]:
        for call in (node for node in walk(statement) if isinstance(node, ast.Call) and len(node.args) == 2):
            layer, both = dotted_name(call.func), _reads_both_ways(call, file, context.program)
            if both is None or layer is None:
                continue
            for size in _first_sizes(Value(call.args[1], file), context.program):
                if size.file is file and number_of(size.node, context.program.names(file)) in (None, got):
                    count = f"{'2 * ' if both else ''}{layer}.num_layers"
                    yield Proposal(
                        edits=(edit_of(file, size.node, count),),
                        culprit=culprit_of(
                            file, size.node, f"makes a state for {got} of {wanted} layers and directions"
                        ),
                        belief=2.0,
                    )


def _without_layers(context: Context) -> Iterator[Proposal]:
    """States of `[batch, hidden]`, to which the axis of the layers is put in front."""
    if not _FLAT.search(message_of(context)):
        return
    for file, statement in list(raised_at(context))[:1]:
        for call in (node for node in walk(statement) if isinstance(node, ast.Call) and len(node.args) == 2):
            layer, both = dotted_name(call.func), _reads_both_ways(call, file, context.program)
            sizes = [one for one in _first_sizes(Value(call.args[1], file), context.program) if one.file is file]
            if both is None or layer is None or not sizes:
                continue
            count = f"{'2 * ' if both else ''}{layer}.num_layers"
            starts = [file.span(one.node)[0] for one in sizes]
            yield Proposal(
                edits=tuple(Edit(file=file.path, start=at, end=at, new=f"{count}, ") for at in dict.fromkeys(starts)),
                culprit=culprit_of(
                    file, sizes[0].node, "makes a state without the axis of the layers, which comes first"
                ),
                belief=2.0,
            )


def _reads_both_ways(call: ast.Call, file: SourceFile, program: Program) -> bool | None:
    """Whether the recurrent layer that a call runs reads both ways; None for a call of anything else."""
    for one in resolver_of(program).constructors_of(Value(call.func, file)):
        if isinstance(one.node, ast.Call) and program.names(one.file).is_call(one.node, *RECURRENT):
            flag = next((word.value for word in one.node.keywords if word.arg == "bidirectional"), None)
            return isinstance(flag, ast.Constant) and flag.value is True
    return None


def _first_sizes(value: Value, program: Program, depth: int = 0) -> Iterator[Value]:
    """The first sizes of what a state is made of, through names, pairs and methods: `1` of `torch.zeros(1, batch, hidden)`."""
    node = value.node
    size = first_size(node)
    if size is not None:
        yield Value(size, value.file)
    elif depth < _DEPTH and isinstance(node, ast.Tuple):
        for part in node.elts:
            yield from _first_sizes(Value(part, value.file), program, depth + 1)
    elif depth < _DEPTH and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from _first_sizes(Value(node.func.value, value.file), program, depth + 1)
    elif depth < _DEPTH and isinstance(node, (ast.Name, ast.Attribute)):
        for one in resolver_of(program).behind(value):
            yield from _first_sizes(one, program, depth + 1)
