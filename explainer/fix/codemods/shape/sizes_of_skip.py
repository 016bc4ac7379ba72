"""Points at the layer that enlarges what meets an earlier size: pooling rounds an odd size down, and twice that is one less.

`torch.cat([skip, self.up(x)], dim=1)` and `skip + F.interpolate(x, scale_factor=2)`. No edit: padding, cropping, resizing and images of
other sizes train on different values. But where a stride has rounded an odd size up, twice that is one more: nearest values of
the size that is met, `F.interpolate(x, size=skip.shape[2:])`, are those of twice the size, the last of them cut off. That is a rule
of its own, with `rounded_up` in its options.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import definitions
from explainer.source.value.resolve import resolver_of

_REFUSED = re.compile(
    r"must match except in dimension 1\. (?:Expected size|Got) (\d+) (?:but got size|and) (\d+)"
    r"|size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension [2-4]"
)
_JOINS = ("torch.cat", "torch.concat", "torch.concatenate")
_ENLARGES = (
    *(f"torch.nn.ConvTranspose{number}d" for number in (1, 2, 3)),
    *(f"torch.nn.{name}" for name in ("Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d", "PixelShuffle")),
)
_RESIZES = ("torch.nn.functional.interpolate", "torch.nn.functional.upsample")
_PAIR = 2
MAX_LOST = 31  # what five poolings can round down


def propose(context: Context) -> Iterator[Proposal]:
    """The line that enlarges one of the two."""
    refused = _REFUSED.search(message_of(context))
    if refused is None:
        return
    larger, smaller = sorted((int(one) for one in refused.groups() if one is not None), reverse=True)
    if context.options.get("rounded_up"):
        yield from _rounded_up(smaller, context) if smaller % 2 and larger == smaller + 1 else ()
        return
    if larger - smaller > MAX_LOST or smaller % 2:
        return  # what is enlarged has a whole multiple of the size
    for file, statement in list(raised_at(context))[:1]:
        for node in walk(statement):
            for part in _joined(node, file, context.program):
                for call in _enlarged(part, statement, file, context.program):
                    why = f"gives {smaller} for {larger}: a size that was rounded down comes back smaller"
                    yield Proposal(edits=(), culprit=culprit_of(file, call, why), belief=2.0)
                    return


def _rounded_up(size: int, context: Context) -> Iterator[Proposal]:
    """The size that is met, for what is twice a size that was rounded up."""
    for file, statement in list(raised_at(context))[:1]:
        for parts in (_joined(node, file, context.program) for node in walk(statement)):
            for part, other in (parts, parts[::-1]) if len(parts) == _PAIR else ():
                for call in _enlarged(part, statement, file, context.program):
                    scale = next((one for one in call.keywords if one.arg == "scale_factor"), None)
                    if scale is not None and _is_doubled(call, scale) and dotted_name(other) is not None:
                        why = f"gives {size + 1} for {size}: a size that was rounded up comes back larger"
                        new = f"size={file.segment(other)}.shape[2:]"
                        yield Proposal(
                            edits=(edit_of(file, scale, new),), culprit=culprit_of(file, call, why), belief=2.5,
                            title="Enlarge to the size that is met: `F.interpolate(x, size=skip.shape[2:])`",
                            because="the nearest values of that size are those of twice the size, the last of them cut off",
                        )  # fmt: skip
                        return


def _is_doubled(call: ast.Call, scale: ast.keyword) -> bool:
    """Whether a call takes the nearest values of twice the size."""
    mode = next((one.value for one in call.keywords if one.arg == "mode"), None)
    is_nearest = mode is None or (isinstance(mode, ast.Constant) and mode.value == "nearest")
    return is_nearest and isinstance(scale.value, ast.Constant) and scale.value.value == 2


def _joined(node: ast.AST, file: SourceFile, program: Program) -> list[ast.expr]:
    """The tensors that a call joins, or that are added."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [node.left, node.right]
    if isinstance(node, ast.Call) and program.names(file).is_call(node, *_JOINS) and node.args:
        return list(node.args[0].elts) if isinstance(node.args[0], (ast.List, ast.Tuple)) else []
    return []


def _enlarged(part: ast.expr, at: ast.stmt, file: SourceFile, program: Program) -> Iterator[ast.Call]:
    """The call that enlarges a tensor, there or where its name was bound last."""
    function = program.names(file).function_of(at)
    if isinstance(part, ast.Name) and function is not None:
        made = definitions(part.id, at, function)
        part = value if len(made) == 1 and isinstance(made[0], ast.Assign) and (value := made[0].value) else part
    if not isinstance(part, ast.Call):
        return
    words = {one.arg for one in part.keywords}
    if program.names(file).is_call(part, *_RESIZES):
        if "scale_factor" in words:
            yield part
    elif "output_size" not in words:
        for made_by in resolver_of(program).constructors_of(Value(part.func, file)):
            calls = (one for one in walk(made_by.node) if isinstance(one, ast.Call))
            if any(program.names(made_by.file).is_call(one, *_ENLARGES) for one in calls):
                yield part
                return
