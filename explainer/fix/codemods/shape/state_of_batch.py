"""A recurrent layer's first state is made for the batch that it gets, not for the batch size of the settings.

`torch.zeros(layers, self.batch_size, hidden)` fails at the last batch of an epoch; its size becomes `x.size(0)`. A method
that makes the state is handed it. So is noise that a function makes for a full batch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import batches_of, message_of, raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import add_argument
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.network.recurrent import RECURRENT, first_size
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bind_call, find_calls
from explainer.source.value.lineage import definitions, scope_of
from explainer.source.value.resolve import resolver_of

_CELLS = ("torch.nn.LSTMCell", "torch.nn.GRUCell", "torch.nn.RNNCell")
_BATCH = re.compile(r"(?:^|_)(?:batch|batch_?size|bs|bsz|n_?batch)$", re.IGNORECASE)
_NAME = "batch"
_DEPTH = 8
_ROWS = re.compile(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension 0")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit where the failing line gives a recurrent layer a state of another batch size."""
    program = context.program
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
                edits = _of_parameter(value, (file, call), context) or _edits(
                    value, (file, call), f"{given}.size({axis})", program
                )
                if edits:
                    why = "makes the state for the batch size of the settings; the last batch of an epoch is smaller"
                    yield Proposal(edits=edits, culprit=culprit_of(value.file, value.node, why), belief=2.0)


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
            if not others or value is None:
                continue
            first = first_size(value)
            if first is not None and not _is_of_a_tensor(first):
                yield Proposal(
                    edits=(edit_of(file, first, f"{others[0]}.size(0)"),),
                    culprit=culprit_of(file, first, f"is {size}, and the batch that came has {rows[others[0]]}"),
                    belief=2.0,
                )


def _elsewhere(context: Context) -> Iterator[Proposal]:
    """What a forward, or a method that it calls, makes for the batch size of the settings, where two batches do not fit."""
    program = context.program
    for file, call in find_calls(program):
        size = first_size(call)
        if size is None or not _BATCH.search((dotted_name(size) or "").rpartition(".")[2]):
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
        if names.is_call(one.node, *RECURRENT) and isinstance(one.node, ast.Call):
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


def _of_parameter(value: Value, at: tuple[SourceFile, ast.Call], context: Context) -> tuple[Edit, ...]:
    """The size of a tensor that the method gets already: `x.size(0)` in `def start(self, x)`, where the batch came so."""
    program, rows = context.program, batches_of(message_of(context))
    maker, user = program.names(value.file).function_of(value.node), program.names(at[0]).function_of(at[1])
    calls = resolver_of(program).calls_of(maker, value.file) if maker is not None else []
    if rows is None or maker is None or maker is user or len(calls) != 1:
        return ()
    file, call = calls[0]
    if program.names(file).function_of(call) is not user:
        return ()
    for name, bound in bind_call(call, maker, Value(call, file)).items():
        tensor = seen(bound.node, context)
        if tensor is not None and rows[0] in tensor.shape:
            return (edit_of(value.file, value.node, f"{name}.size({tensor.shape.index(rows[0])})"),)
    return ()


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
