"""`nn.LSTM(3, 32)` becomes `nn.LSTM(3, 32, batch_first=True)` where what it gets has the batch first.

Without it the layer reads (time, batch, features) and runs over the samples; so does attention. Where the program reads the
layer's output time first, the input is transposed instead. Only where the source shows how the batch is laid out, or the mask
that did not fit, beside the input that the live program had.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from explainer.fix.clue.crash import batches_of, message_of
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument, put_method
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.recurrent import RECURRENT
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, find_calls, reaching, scope_of
from explainer.source.value.layout import batch_axis, says_batch_first
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_ATTENTION = (
    "torch.nn.TransformerEncoderLayer", "torch.nn.TransformerDecoderLayer", "torch.nn.MultiheadAttention", "torch.nn.Transformer",
)  # fmt: skip
_ATTENDS = frozenset({"multi_head_attention_forward", "_check_key_padding_mask", "_sa_block", "_mha_block"})
# The place of `batch_first` among the arguments.
_PLACES = {
    "LSTM": 4, "GRU": 4, "RNN": 5, "TransformerEncoderLayer": 6, "TransformerDecoderLayer": 6, "MultiheadAttention": 8, "Transformer": 10,
}  # fmt: skip
_STACKS = {"torch.nn.TransformerEncoder": "encoder_layer", "torch.nn.TransformerDecoder": "decoder_layer"}
_BATCH_FIRST, _TIME_FIRST, _OPEN = "batch first", "time first", "open"
_DEPTH = 4
_PADDING = re.compile(r"Expected key_padded_mask\.shape\[0\] to be (\d+), but got (\d+)")
_MASK = re.compile(r"shape of the 2D attn_mask is torch\.Size\(\[(\d+), \1\]\), but should be \((\d+), \2\)")
_SIZES = (
    re.compile(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)"),
    re.compile(r"Expected size (\d+) but got size (\d+) for tensor number"),
)
_OF_ONE_SHAPE = frozenset({"flip", "detach", "contiguous", "float", "clone", "to", "roll"})
_ONE_BY_ONE = frozenset({"eq", "ne", "bool", "logical_not", "to"})
_REDUCTIONS = frozenset({"mean", "sum", "max", "amax", "min", "std", "logsumexp", "select", "unbind", "flip"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each recurrent or attention layer that runs over the batch."""
    if not context.has_failed:
        return
    program = context.program
    kinds = (*RECURRENT, *_ATTENTION) if _is_of_attention(context) else RECURRENT
    runs: dict[ast.Call, list[tuple[SourceFile, ast.Call]]] = {}
    made: dict[ast.Call, SourceFile] = {}
    for file, call in find_calls(program):
        for one in resolver_of(program).constructors_of(Value(call.func, file)) if call.args else ():
            for layer, where in _layers_of(one, program):
                if layer is not call and _is_time_first(layer, where, kinds, program):
                    runs.setdefault(layer, []).append((file, call))
                    made[layer] = where
    for layer, calls in runs.items():
        is_attention = program.names(made[layer]).is_call(layer, *_ATTENTION)
        if is_attention and not all(_are_all_batch_first(call, file, program) for file, call in calls):
            if any(_is_told(call, context) for _, call in calls):
                yield from _proposals(layer, made[layer], calls, program)
            continue
        if all(_gets_batch_first(call, file, program) for file, call in calls) or (
            not is_attention and any(_is_state_told(call, context) or _is_size_told(call, context) for _, call in calls)
        ):
            yield from _proposals(layer, made[layer], calls, program)


def _is_of_attention(context: Context) -> bool:
    """Whether what failed is an attention layer: elsewhere the batch in its second place raises nothing."""
    return any(
        frame.function in _ATTENDS and frame.library == "torch"
        for record in context.incident.exceptions
        for frame in record.frames
    )


def _layers_of(made: Value, program: Program) -> Iterator[tuple[ast.Call, SourceFile]]:
    """The layer that a call makes; of a stack of layers the one that it copies."""
    if not isinstance(made.node, ast.Call):
        return
    argument = _STACKS.get(program.names(made.file).qualified(made.node.func) or "")
    if argument is None:
        yield made.node, made.file
        return
    given = next((one.value for one in made.node.keywords if one.arg == argument), None)
    copied = given or (made.node.args[0] if made.node.args else None)
    for one in resolver_of(program).constructors_of(Value(copied, made.file)) if copied is not None else ():
        if isinstance(one.node, ast.Call):
            yield one.node, one.file


def _is_time_first(call: ast.Call, file: SourceFile, kinds: Sequence[str], program: Program) -> bool:
    """Whether a call makes a layer that reads (time, batch, features): it says nothing else."""
    place = _PLACES.get((program.names(file).qualified(call.func) or "").rpartition(".")[2], 0)
    if len(call.args) > place or any(isinstance(one, ast.Starred) for one in call.args):
        return False
    return program.names(file).is_call(call, *kinds) and not any(
        one.arg in ("batch_first", None) for one in call.keywords
    )


def _are_all_batch_first(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether queries, keys, values and memories have the batch first, as far as they are given by place."""
    return all(batch_axis(Value(one, file), program) == 0 for one in call.args)


def _is_told(call: ast.Call, context: Context) -> bool:
    """Whether the mask that did not fit has the input's first two axes as batch and time, and the layer took them the other way."""
    tensor = seen(call.args[0], context)
    padding, mask = _PADDING.search(message_of(context)), _MASK.search(message_of(context))
    given = [seen(_compared(one.value), context) for one in call.keywords if str(one.arg).endswith("key_padding_mask")]
    hidden = given[0] if given else None
    if padding is not None and tensor is None and hidden is not None:
        return (int(padding[2]), int(padding[1])) == hidden.shape and padding[1] != padding[2]
    if tensor is None or len(tensor.shape) != 3:
        return False
    batch, time = tensor.shape[:2]
    if padding is not None:
        return batch != time and (time, batch) == (int(padding[1]), int(padding[2]))
    return mask is not None and batch != time and (time, batch) == (int(mask[1]), int(mask[2]))


def _compared(mask: ast.expr) -> ast.expr:
    """What a mask is made of, one by one: `ids` for `ids == 0`, `~ids.ne(pad)`."""
    if isinstance(mask, ast.Compare):
        return _compared(mask.left)
    if isinstance(mask, ast.UnaryOp):
        return _compared(mask.operand)
    is_method = isinstance(mask, ast.Call) and isinstance(mask.func, ast.Attribute) and mask.func.attr in _ONE_BY_ONE
    return _compared(mask.func.value) if is_method else mask  # type: ignore[attr-defined]


def _is_state_told(call: ast.Call, context: Context) -> bool:
    """Whether the state that did not fit has the input's first axis as batch, and the layer took its second."""
    axes, batches = _axes(call.args[0], context), batches_of(message_of(context))
    if axes is None or batches is None:
        return False
    taken, given = batches
    return taken != given and axes == (given, taken)


def _axes(node: ast.expr, context: Context) -> tuple[int, int] | None:
    """The first two axes of a layer's input, as the live program had them; of `embed(words)` those of the words."""
    tensor = seen(node, context)
    if tensor is None and isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        ids = seen(node.args[0], context)
        return ids.shape if ids is not None and ids.is_integer and len(ids.shape) == 2 else None
    return tensor.shape[:2] if tensor is not None and len(tensor.shape) == 3 else None


def _is_size_told(call: ast.Call, context: Context) -> bool:
    """Whether what did not fit were the input's batch, of another tensor, and its time, which the layer took for the batch."""
    node = call.args[0]
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OF_ONE_SHAPE:
        node = node.func.value
    tensor = seen(node, context)
    sizes = next((found.groups() for one in _SIZES if (found := one.search(message_of(context)))), ())
    if tensor is None or len(tensor.shape) != 3 or len(sizes) != 2:
        return False
    batch, time, features = tensor.shape
    return batch != time and features not in (batch, time) and {int(one) for one in sizes} == {batch, time}


def _gets_batch_first(call: ast.Call, file: SourceFile, program: Program) -> bool:
    axis = batch_axis(Value(call.args[0], file), program)
    state = call.args[1] if len(call.args) > 1 else None
    stated = state is not None and says_batch_first(call.args[0], Value(state, file), program)
    return axis == 0 or (axis is None and stated)


def _proposals(
    layer: ast.Call, file: SourceFile, calls: list[tuple[SourceFile, ast.Call]], program: Program
) -> Iterator[Proposal]:
    readings = {one for where, call in calls for one in _readings(call, where, program)}
    is_attention = program.names(file).is_call(layer, *_ATTENTION)
    if _OPEN in readings or len(readings) > 1 or (is_attention and _TIME_FIRST in readings):
        return
    why = "reads (time, batch, features) and gets (batch, time, features)"
    if _TIME_FIRST in readings:
        edits = tuple(put_method(where, call.args[0], ".transpose(0, 1)") for where, call in calls)
        title = "Put time first where the layer is called: its output is read so"
    else:
        edits = (add_argument(file, layer, "batch_first=True"),)
        title = None
    yield Proposal(edits=edits, culprit=culprit_of(file, layer, why), belief=2.6, title=title)


def _readings(call: ast.Call, file: SourceFile, program: Program) -> Iterator[str]:
    """How the output is read where it is taken apart by positions; the last state has the batch second either way."""
    above = file.parents.get(call)
    if isinstance(above, ast.Subscript) and above.value is call:
        is_output = isinstance(above.slice, ast.Constant) and above.slice.value == 0
        if not is_output:
            return
        yield from _read(above, file, program)
        above = file.parents.get(above)
    if isinstance(above, ast.Assign):
        target = above.targets[0]
        target = target.elts[0] if isinstance(target, (ast.Tuple, ast.List)) and target.elts else target
        yield from _read_as(target, above, file, program, 0)


def _read_as(target: ast.expr, made: ast.Assign, file: SourceFile, program: Program, depth: int) -> Iterator[str]:
    """How a name that an assignment gives to the output is read, and the names that hold what becomes of it."""
    name = dotted_name(target)
    for node in walk(scope_of(made, file)) if name is not None and depth < _DEPTH else ():
        is_it = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
        if (
            not is_it
            or dotted_name(node) != name
            or not any(one.statement is made for one in reaching(name or "", node, file))
        ):
            continue
        assert isinstance(node, (ast.Name, ast.Attribute))
        found = list(_read(node, file, program))
        yield from found
        statement = file.statement(node)
        if not found and isinstance(statement, ast.Assign) and statement is not made:
            yield from _read_as(statement.targets[0], statement, file, program, depth + 1)
        elif not found and isinstance(statement, ast.Return) and _is_handed_on(node, statement):
            yield _OPEN


def _is_handed_on(node: ast.expr, statement: ast.Return) -> bool:
    """Whether a function returns the output as it is, alone or in a tuple: others then read it."""
    value = statement.value
    return node is value or (isinstance(value, (ast.Tuple, ast.List)) and node in value.elts)


def _read(node: ast.expr, file: SourceFile, program: Program) -> Iterator[str]:
    """How one use of the output reads it."""
    above = file.parents.get(node)
    names = program.names(file)
    if isinstance(above, ast.Subscript) and above.value is node:
        parts = above.slice.elts if isinstance(above.slice, ast.Tuple) else [above.slice]
        if isinstance(parts[0], ast.Slice) and len(parts) > 1 and not isinstance(parts[1], ast.Slice):
            yield _BATCH_FIRST
        elif not isinstance(above.slice, ast.Tuple) and number_of(parts[0], names) is not None:
            yield _TIME_FIRST
        elif (
            len(parts) > 1 and isinstance(parts[0], ast.Call) and names.is_call(parts[0], "torch.arange")
        ) or _is_padding_mask(parts[0], node, file):
            yield _BATCH_FIRST
        elif not isinstance(parts[0], ast.Slice):
            yield _OPEN
    elif isinstance(above, ast.Attribute) and above.attr in _REDUCTIONS:
        call = file.parents.get(above)
        given = [*call.args, *(one.value for one in call.keywords)] if isinstance(call, ast.Call) else []
        dimension = number_of(given[0], names) if given else None
        if dimension in (0, 1):
            yield _TIME_FIRST if dimension == 0 else _BATCH_FIRST


def _is_padding_mask(index: ast.expr, node: ast.expr, file: SourceFile) -> bool:
    """Whether an index is a mask that the scope hands to attention as its padding, or the opposite: (batch, time) by contract."""
    inner = index.operand if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert) else index
    name = dotted_name(inner)
    return name is not None and any(
        isinstance(one, ast.keyword) and str(one.arg).endswith("key_padding_mask") and dotted_name(one.value) == name
        for one in walk(scope_of(node, file))
    )
