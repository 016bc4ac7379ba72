"""What a layer says that got an input of another size than it was built for, and which layer of the program that may be."""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen_shape import Shape, seen_shape
from explainer.fix.codemod import Context
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_LINEAR = re.compile(r"shapes cannot be multiplied \((?P<rows>\d+)x(?P<got>\d+) and (?P<wanted>\d+)x\d+\)")
_RECURRENT = re.compile(r"must be equal to input_size\. Expected (?P<wanted>\d+), got (?P<got>\d+)")
_NORM = re.compile(r"normalized_shape=\[(?P<wanted>\d+)\], expected .*got input of size\[(?P<shape>[\d, ]+)\]")
_BATCH_NORM = re.compile(r"running_mean should contain (?P<got>\d+) elements not (?P<wanted>\d+)")
_CONV = re.compile(r"input ?\[(?P<shape>[\d, ]+)\] to have (?P<wanted>\d+) channels, but got (?P<got>\d+) channels")
_LAYERS = {
    _LINEAR: r"Linear", _RECURRENT: r"(?:LSTM|GRU|RNN)", _NORM: r"\w*LayerNorm|RMSNorm", _BATCH_NORM: r"\w*BatchNorm\d?d",
    _CONV: r"Conv(?:Transpose)?\dd",
}  # fmt: skip
_LEAKED = re.compile(r"column (\d+) of (\d+) in ")
_LAST = (_LINEAR, _RECURRENT, _NORM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the message says: the size that the layer wants in its axis, that which it got, and the input's shape if told."""

    kind: re.Pattern[str]
    wanted: int
    got: int | None
    shape: tuple[int, ...] | None
    rows: int | None = None

    @property
    def is_vector(self) -> bool:
        """Whether a layer of one feature may have got a value for each sample, which torch takes for one row of many features."""
        return self.rows == 1 and self.wanted == 1

    def lacks_features(self, shape: Shape) -> bool:
        """Whether an input of some shape is values alone, a row or a series for each sample, for a layer of one feature."""
        is_series = self.kind is _RECURRENT and self.wanted == 1 and len(shape) == 2
        return (is_series or (self.is_vector and len(shape) == 1)) and shape[-1] in (self.got, None)

    def lacks_batch(self, shape: Shape | None) -> bool:
        """Whether a convolution took the batch of an input without channels for these, and put a batch of one before it.

        Where the input's shape is not known, it may be so.
        """
        if not self.is_convolution or self.shape is None:
            return False
        return self.shape[0] == 1 and (shape is None or self.shape == (1, *shape))

    def lacks_flatten(self, shape: Shape | None) -> bool:
        """Whether a linear layer is built for all numbers of a sample, which stand in several axes."""
        if self.kind is not _LINEAR or shape is None or len(shape) < 3 or None in shape[1:]:
            return False
        return math.prod(one or 0 for one in shape[1:]) == self.wanted

    def stands_elsewhere(self, shape: Shape | None) -> bool:
        """Whether the size that the layer wants is that of another axis of its input: images with their channels last."""
        known = shape or self.shape or ()
        axis = len(known) - 1 if self.is_last else 1
        return any(size == self.wanted for at, size in enumerate(known) if at not in (0, axis))

    @property
    def is_last(self) -> bool:
        """Whether the layer reads its features in the last axis."""
        return self.kind in _LAST

    @property
    def is_convolution(self) -> bool:
        """Whether it is a convolution, which gives an input without a batch one of its own."""
        return self.kind is _CONV

    @property
    def size(self) -> int | None:
        """The size of the layer's axis in the input that it got."""
        if self.got is None and self.shape is not None:
            return self.shape[-1 if self.is_last else 1]
        return self.got


def read_told(message: str) -> Told | None:
    """What the message of a layer says; None of other messages."""
    for kind in _LAYERS:
        found = kind.search(message)
        if found is not None:
            groups = found.groupdict()
            shape = tuple(int(one) for one in re.findall(r"\d+", groups.get("shape") or ""))
            got = groups.get("got")
            rows = groups.get("rows")
            return Told(
                kind=kind,
                wanted=int(groups["wanted"]),
                got=int(got) if got is not None else None,
                shape=shape or None,
                rows=int(rows) if rows is not None else None,
            )
    return None


def layer_of(call: ast.Call, file: SourceFile, told: Told, program: Program) -> tuple[SourceFile, ast.Call] | None:
    """The layer which the message speaks of, where a call may be its own or that of a container that starts with it."""
    for one in resolver_of(program).constructors_of(Value(call.func, file)) if call.args else ():
        made = _first_layer(one.node, one.file, program)
        if made is None or made is call or not made.args:
            continue
        name = program.names(one.file).qualified(made.func) or ""
        is_kind = re.fullmatch(rf"torch\.nn\.(?:{_LAYERS[told.kind]})", name) is not None
        if is_kind and number_of(made.args[0], program.names(one.file)) in (None, told.wanted):
            return one.file, made
    return None


def is_input_at_fault(context: Context) -> bool:
    """Whether the layer that failed fits its input, were that flattened or its axes moved: then it is built as it was meant."""
    told = read_told(message_of(context))
    for file, statement in list(raised_at(context))[:1] if told is not None else ():
        for call in walk(statement):
            if told is not None and isinstance(call, ast.Call) and layer_of(call, file, told, context.program):
                shape = seen_shape(call.args[0], file, context)
                return told.lacks_flatten(shape) or told.stands_elsewhere(shape)
    return False


def leaked_column(context: Context) -> tuple[int, int] | None:
    """Which column of how many the target is among the features, where the layer was built for one feature less; None where not."""
    told, live = read_told(message_of(context)), context.incident.fact("live_leaked_target")
    found = _LEAKED.match(str(live.value)) if live is not None else None
    if found is None or told is None or not told.size == told.wanted + 1 == int(found[2]):
        return None
    return int(found[1]), int(found[2])


def _first_layer(node: ast.AST, file: SourceFile, program: Program) -> ast.Call | None:
    while isinstance(node, ast.Call) and program.names(file).is_call(node, "torch.nn.Sequential") and node.args:
        node = node.args[0]
    return node if isinstance(node, ast.Call) else None
