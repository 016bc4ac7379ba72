"""A shortcut has the size of what it is added to: `nn.Conv2d(a, b, 1, stride=stride)` beside a convolution with that stride.

And a convolution of a residual block keeps the size of its input: `nn.Conv2d(c, c, 3, padding=1)`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_REFUSED = re.compile(
    r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension [2-4]"
)
_CONVOLUTIONS = ("torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d")
_PADS = "keeps the size, as a sum with the input needs; cutting the input instead would give a smaller output"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the convolutions of the sum that raised."""
    refused = _REFUSED.search(message_of(context))
    if refused is None:
        return
    larger, smaller = sorted((int(refused[1]), int(refused[2])), reverse=True)
    for file, statement in list(raised_at(context))[:1]:
        for node in (one for one in walk(statement) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add)):
            sides = [list(_convolutions(one, file, context.program)) for one in (node.left, node.right)]
            yield from _strided(sides, context.program)
            yield from _padded([one for side in sides for one in side], larger - smaller, context.program)


def _convolutions(side: ast.expr, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The convolutions that a side of a sum runs, by themselves or in containers."""
    for node in walk(side):
        if not isinstance(node, ast.Call):
            continue
        for made in resolver_of(program).constructors_of(Value(node.func, file)):
            for one in walk(made.node):
                if isinstance(one, ast.Call) and program.names(made.file).is_call(one, *_CONVOLUTIONS):
                    yield made.file, one


def _strided(sides: list[list[tuple[SourceFile, ast.Call]]], program: Program) -> Iterator[Proposal]:
    """The stride of the one side for the one convolution of a point on the other."""
    for side, other in (sides, sides[::-1]):
        strides = {
            where.segment(word.value)
            for where, one in other
            for word in one.keywords
            if word.arg == "stride" and number_of(word.value, program.names(where)) != 1
        }
        if len(side) != 1 or len(strides) != 1:
            continue
        (where, call), (stride,) = side[0], strides
        is_point = len(call.args) > 2 and number_of(call.args[2], program.names(where)) == 1
        if is_point and len(call.args) == 3 and not any(word.arg == "stride" for word in call.keywords):
            yield Proposal(
                edits=(add_argument(where, call, f"stride={stride}"),),
                culprit=culprit_of(where, call, "has not the stride of what its output is added to"),
                belief=2.2,
            )


def _padded(found: list[tuple[SourceFile, ast.Call]], lost: int, program: Program) -> Iterator[Proposal]:
    """The padding of the one convolution that has none, where it takes off just what is missing."""
    fits = [
        (where, one, int(kernel))
        for where, one in found
        if len(one.args) == 3 and not any(word.arg in ("padding", "stride", "dilation", None) for word in one.keywords)
        and (kernel := number_of(one.args[2], program.names(where))) is not None and kernel % 2 and kernel - 1 == lost
    ]  # fmt: skip
    if len(fits) == 1:
        where, one, size = fits[0]
        yield Proposal(
            edits=(add_argument(where, one, f"padding={size // 2}"),),
            culprit=culprit_of(where, one, f"takes {lost} off the size of what it is added to"),
            belief=1.8,
            applicability="unsafe",
            because=_PADS,
        )
