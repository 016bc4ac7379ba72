"""`self.conv(x.transpose(1, 2))`: an input whose features stand in another axis than the layer reads them in.

Only where the live program had the input's shape, or the message says it, and just one other axis has the size that the layer
was built for. An image or a series without a channel gets one: `self.conv(x.unsqueeze(1))`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.crash import message_of, raised_at
from explainer.fix.rewrite import put_method
from explainer.fix.seen import seen
from explainer.source.binding import Value
from explainer.source.file import SourceFile
from explainer.source.number import number_of
from explainer.source.origin import KEEP
from explainer.source.program import Program
from explainer.source.resolve import resolver_of
from explainer.source.tree import walk

_LINEAR = re.compile(r"shapes cannot be multiplied \(\d+x(?P<got>\d+) and (?P<wanted>\d+)x\d+\)")
_RECURRENT = re.compile(r"must be equal to input_size\. Expected (?P<wanted>\d+), got (?P<got>\d+)")
_NORM = re.compile(r"normalized_shape=\[(?P<wanted>\d+)\], expected .*got input of size\[(?P<shape>[\d, ]+)\]")
_BATCH_NORM = re.compile(r"running_mean should contain (?P<got>\d+) elements not (?P<wanted>\d+)")
_CONV = re.compile(r"input ?\[(?P<shape>[\d, ]+)\] to have (?P<wanted>\d+) channels, but got (?P<got>\d+) channels")
_LAYERS = {
    _LINEAR: r"Linear", _RECURRENT: r"(?:LSTM|GRU|RNN)", _NORM: r"\w*LayerNorm|RMSNorm", _BATCH_NORM: r"\w*BatchNorm\d?d",
    _CONV: r"Conv(?:Transpose)?\dd",
}  # fmt: skip
_LAST = (_LINEAR, _RECURRENT, _NORM)
# What changes no shape, beside the methods that keep a tensor as it is.
_ELEMENTWISE = frozenset(
    {"relu", "gelu", "silu", "tanh", "sigmoid", "exp", "log", "log1p", "sqrt", "abs", "float", "half", "double", "clamp", "square"}
    | {"dropout", "softmax", "log_softmax", "normalize", "layer_norm", "nan_to_num", "bfloat16", "pow", "add", "sub", "mul", "div"}
)  # fmt: skip
_MOVES = frozenset(
    {"view", "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "t", "T", "repeat", "expand"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What the message says: the size that the layer wants in its axis, that which it got, and the input's shape if told."""

    kind: re.Pattern[str]
    wanted: int
    got: int | None
    shape: tuple[int, ...] | None

    @property
    def is_last(self) -> bool:
        return self.kind in _LAST


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the layer on the line that raised, where moving one axis of its input makes it fit."""
    told = _told(message_of(context))
    if told is None:
        return
    for file, statement in list(raised_at(context))[:1]:
        calls = [
            one for one in walk(statement) if isinstance(one, ast.Call) and _fits(one, file, told, context.program)
        ]
        if len(calls) != 1 or isinstance(calls[0].args[0], ast.Starred):
            return
        given = calls[0].args[0]
        known = _shape_of(given, context)
        method = _moved(known or told.shape, told, is_known=known is not None)
        if method is not None:
            yield Proposal(
                edits=(put_method(file, given, method),),
                culprit=culprit_of(file, calls[0], f"reads {told.wanted} features in another axis than they stand in"),
                belief=1.3,
                applicability="unsafe",
            )


def _told(message: str) -> _Told | None:
    for kind in _LAYERS:
        found = kind.search(message)
        if found is not None:
            groups = found.groupdict()
            shape = tuple(int(one) for one in re.findall(r"\d+", groups.get("shape") or ""))
            got = groups.get("got")
            return _Told(
                kind=kind, wanted=int(groups["wanted"]), got=int(got) if got is not None else None, shape=shape or None
            )
    return None


def _fits(call: ast.Call, file: SourceFile, told: _Told, program: Program) -> bool:
    """Whether a call may be that of the layer which the message speaks of, or of a container that starts with it."""
    if not call.args:
        return False
    for one in resolver_of(program).constructors_of(Value(call.func, file)):
        made = _first_layer(one.node, one.file, program)
        if made is None or made is call:
            continue
        name = program.names(one.file).qualified(made.func) or ""
        if re.fullmatch(rf"torch\.nn\.(?:{_LAYERS[told.kind]})", name) is None:
            continue
        width = number_of(made.args[0], program.names(one.file)) if made.args else None
        return width in (None, told.wanted)
    return False


def _first_layer(node: ast.AST, file: SourceFile, program: Program) -> ast.Call | None:
    while isinstance(node, ast.Call) and program.names(file).is_call(node, "torch.nn.Sequential") and node.args:
        node = node.args[0]
    return node if isinstance(node, ast.Call) else None


def _shape_of(node: ast.expr, context: Context) -> tuple[int, ...] | None:
    """The shape of an expression of which the live program had the tensor, through what works on each element."""
    tensor = seen(node, context)
    if tensor is not None:
        return tensor.shape
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    method = node.func.attr
    if method not in _ELEMENTWISE and (method not in KEEP or method in _MOVES):
        return None
    return _shape_of(node.func.value, context) or (_shape_of(node.args[0], context) if node.args else None)


def _moved(shape: tuple[int, ...] | None, told: _Told, *, is_known: bool) -> str | None:
    """The method that brings the wanted size to the layer's axis; None where no one axis, or more than one, has it."""
    if shape is None:
        return None
    if told.kind is _CONV and told.wanted == 1 and is_known and told.shape == (1, *shape):
        return ".unsqueeze(1)"
    axis = len(shape) - 1 if told.is_last else 1
    others = [at for at, size in enumerate(shape) if size == told.wanted and at not in (0, axis)]
    if len(shape) < 3 or len(others) != 1 or (told.got is not None and shape[axis] != told.got):
        return None
    if len(shape) == 3:
        return ".transpose(1, 2)"
    order = [at for at in range(len(shape)) if at != others[0]]
    order.insert(axis, others[0])
    return f".permute({', '.join(str(one) for one in order)})"
