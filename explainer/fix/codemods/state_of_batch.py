"""A recurrent layer's first state is made for the batch that it gets, not for the batch size of the settings.

`torch.zeros(layers, self.batch_size, hidden)` fails at the last batch of an epoch; its size becomes `x.size(0)`. A method
that makes the state is handed it. One that is made for fewer layers than there are gets `rnn.num_layers` of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.crash import batches_of, message_of, raised_at
from explainer.fix.rewrite import add_argument
from explainer.fix.seen import seen
from explainer.model.patch import Edit
from explainer.source.binding import Value, all_parameters, find_calls
from explainer.source.file import SourceFile
from explainer.source.lineage import definitions, scope_of
from explainer.source.name import Function, dotted_name
from explainer.source.number import number_of
from explainer.source.program import Program
from explainer.source.resolve import resolver_of
from explainer.source.tree import walk

_LAYERS = ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")
_CELLS = ("torch.nn.LSTMCell", "torch.nn.GRUCell", "torch.nn.RNNCell")
_BATCH = re.compile(r"(?:^|_)(?:batch|batch_?size|bs|bsz|n_?batch)$", re.IGNORECASE)
_NAME = "batch"
_MAKERS = ("zeros", "ones", "randn", "rand", "full", "new_zeros", "new_ones", "empty")
_DEPTH = 8
_LAYERED = re.compile(r"Expected hidden(?:\[\d\])? size \((\d+), (\d+), (\d+)\), got \[(\d+), (\d+), (\d+)\]")
_FLAT = re.compile(r"For batched 3-D input, hx (?:and cx )?should also be 3-D but got")
_ROWS = re.compile(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension 0")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit where the failing line gives a recurrent layer a state of another batch size."""
    program = context.program
    yield from _of_fewer_layers(context)
    yield from _without_layers(context)
    if batches_of(message_of(context)) is None:
        if rows := _ROWS.search(message_of(context)):
            yield from _beside(int(rows[1]), int(rows[2]), context)
            yield from _elsewhere(context)
        return
    for file, statement in list(raised_at(context))[:1]:
        for call in (node for node in walk(statement) if isinstance(node, ast.Call) and len(node.args) == 2):
            axis = _batch_axis(call, file, program)
            given = dotted_name(call.args[0])
            if axis is None or given is None:
                continue
            for value in _made(Value(call.args[1], file), program, 0):
                edits = _edits(value, (file, call), f"{given}.size({axis})", program)
                if edits:
                    why = "makes the state for the batch size of the settings; the last batch of an epoch is smaller"
                    yield Proposal(edits=edits, culprit=culprit_of(value.file, value.node, why), belief=2.0)


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
            for size in _first_sizes(Value(call.args[1], file), context.program, 0):
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
            sizes = [one for one in _first_sizes(Value(call.args[1], file), context.program, 0) if one.file is file]
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
        if isinstance(one.node, ast.Call) and program.names(one.file).is_call(one.node, *_LAYERS):
            flag = next((word.value for word in one.node.keywords if word.arg == "bidirectional"), None)
            return isinstance(flag, ast.Constant) and flag.value is True
    return None


def _first_sizes(value: Value, program: Program, depth: int) -> Iterator[Value]:
    """The first size of what a state is made of: `1` of `torch.zeros(1, batch, hidden)`."""
    node = value.node
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _MAKERS and node.args:
        size = node.args[0]
        yield Value(size.elts[0] if isinstance(size, (ast.Tuple, ast.List)) and size.elts else size, value.file)
    elif depth < _DEPTH and isinstance(node, ast.Tuple):
        for part in node.elts:
            yield from _first_sizes(Value(part, value.file), program, depth + 1)
    elif depth < _DEPTH and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from _first_sizes(Value(node.func.value, value.file), program, depth + 1)
    elif depth < _DEPTH and isinstance(node, (ast.Name, ast.Attribute)):
        for one in resolver_of(program).behind(value):
            yield from _first_sizes(one, program, depth + 1)


def _beside(left: int, right: int, context: Context) -> Iterator[Proposal]:
    """What the function that raised has made for a full batch, beside a tensor of the batch that came: noise, a mask."""
    for file, statement in list(raised_at(context))[:1]:
        read = [one for one in walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
        rows = {one.id: tensor.shape[0] for one in read if (tensor := seen(one, context)) is not None and tensor.shape}
        scope = scope_of(statement, file, context.program)
        for name, size in rows.items():
            others = [other for other, count in rows.items() if {count, size} == {left, right} and count != size]
            made = definitions(name, statement, scope) if scope is not None else []
            value = made[0].value if len(made) == 1 and isinstance(made[0], ast.Assign) else None
            if not others or not isinstance(value, ast.Call) or getattr(value.func, "attr", "") not in _MAKERS:
                continue
            first = next(_first_sizes(Value(value, file), context.program, 0), None)
            if first is not None and not _is_of_a_tensor(first.node):
                yield Proposal(
                    edits=(edit_of(file, first.node, f"{others[0]}.size(0)"),),
                    culprit=culprit_of(file, first.node, f"is {size}, and the batch that came has {rows[others[0]]}"),
                    belief=2.0,
                )


def _elsewhere(context: Context) -> Iterator[Proposal]:
    """What a forward, or a method that it calls, makes for the batch size of the settings, where two batches do not fit."""
    program = context.program
    for file, call in find_calls(program):
        size = call.args[0] if call.args else None
        if isinstance(size, (ast.Tuple, ast.List)) and size.elts:
            size = size.elts[0]
        if (
            size is None
            or getattr(call.func, "attr", "") not in _MAKERS
            or not _BATCH.search((dotted_name(size) or "").rpartition(".")[2])
        ):
            continue
        maker = program.names(file).function_of(call)
        calls = resolver_of(program).calls_of(maker, file) if maker is not None and maker.name != "forward" else []
        where, used = calls[0] if len(calls) == 1 else (file, call)
        user = program.names(where).function_of(used)
        if user is None or user.name != "forward" or len(user.args.args) < 2:
            continue
        edits = _edits(Value(size, file), (where, used), f"{user.args.args[1].arg}.size(0)", program)
        if edits:
            why = "is made for the batch size of the settings; the last batch of an epoch is smaller"
            yield Proposal(edits=edits, culprit=culprit_of(file, size, why), belief=1.5)


def _batch_axis(call: ast.Call, file: SourceFile, program: Program) -> int | None:
    """Which dimension of a recurrent layer's input is the batch; None for a call of anything else."""
    for one in resolver_of(program).constructors_of(Value(call.func, file)):
        names = program.names(one.file)
        if names.is_call(one.node, *_CELLS):
            return 0
        if names.is_call(one.node, *_LAYERS) and isinstance(one.node, ast.Call):
            first = next((word.value for word in one.node.keywords if word.arg == "batch_first"), None)
            return 0 if isinstance(first, ast.Constant) and first.value is True else 1
    return None


def _made(value: Value, program: Program, depth: int) -> Iterator[Value]:
    """The batch sizes that a state is made with, followed through names, tuples, methods and shapes."""
    node = value.node
    last = (dotted_name(node) or "").rpartition(".")[2]
    if _BATCH.search(last):
        if not any(_is_of_a_tensor(one.node) for one in resolver_of(program).behind(value)):
            yield value
        return
    if depth > _DEPTH:
        return
    resolver = resolver_of(program)
    if isinstance(node, (ast.Name, ast.Attribute)) and dotted_name(node) is not None:
        for one in resolver.behind(value):
            yield from _made(one, program, depth + 1)
    elif isinstance(node, ast.Call) and (target := resolver.function_of(node, value)) is not None:
        for one in resolver.returns_of(target, node, value):
            yield from _made(one, program, depth + 1)
    else:
        parts = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            parts[0] = node.func.value  # `hidden.contiguous()` is made as `hidden` is
        for part in parts:
            if isinstance(part, ast.expr):
                yield from _made(Value(part, value.file, value.arguments), program, depth + 1)
            elif isinstance(part, ast.keyword):
                yield from _made(Value(part.value, value.file, value.arguments), program, depth + 1)


def _is_of_a_tensor(node: ast.expr) -> bool:
    """Whether a size was read off a tensor, `x.size(0)` or `x.shape`: then it is no setting."""
    return any(isinstance(one, ast.Attribute) and one.attr in ("size", "shape") for one in walk(node))


def _edits(value: Value, at: tuple[SourceFile, ast.Call], size: str, program: Program) -> tuple[Edit, ...]:
    """The size written where the state is made: of the input that stands there, else of a new parameter."""
    file, call = at
    maker = program.names(value.file).function_of(value.node)
    user = program.names(file).function_of(call)
    if maker is None or user is None or (isinstance(value.node, ast.Name) and value.node.id in all_parameters(maker)):
        return ()
    if maker is user:
        return (edit_of(value.file, value.node, size),)
    calls = resolver_of(program).calls_of(maker, value.file)
    if len(calls) != 1 or program.names(calls[0][0]).function_of(calls[0][1]) is not user or not _is_plain(maker):
        return ()
    where, made = calls[0]
    taken = all_parameters(maker) | {node.id for node in walk(maker) if isinstance(node, ast.Name)}
    if _NAME in taken or made.args or made.keywords:
        return ()
    last = maker.args.args[-1]
    parameter = Edit(
        file=value.file.path, start=value.file.span(last)[1], end=value.file.span(last)[1], new=f", {_NAME}"
    )
    return (parameter, edit_of(value.file, value.node, _NAME), add_argument(where, made, size))


def _is_plain(maker: Function) -> bool:
    """Whether a method takes nothing but its object."""
    arguments = maker.args
    others = (arguments.posonlyargs, arguments.kwonlyargs, arguments.defaults, arguments.vararg, arguments.kwarg)
    return len(arguments.args) == 1 and not any(others)
