"""The order of a training step: which statement is the backward, the unscaling, the clipping, the optimizer's, the scheduler's."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

BACKWARD, SCALE, UNSCALE, CLIP, SCALER_STEP, UPDATE = "backward", "scale", "unscale", "clip", "scaler step", "update"
OPTIMIZER_STEP, SCHEDULER_STEP, ZERO = "optimizer step", "scheduler step", "zero"
CLIP_METHODS = (
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_gradients",
)  # of torch, Accelerate; of Lightning and its Fabric
_CLIPS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_")
_OPTIMIZERS = "torch.optim."
_SCHEDULERS = "torch.optim.lr_scheduler."
_SCALERS = (
    "torch.amp.GradScaler",
    "torch.cuda.amp.GradScaler",
    "torch.amp.grad_scaler.GradScaler",
    "torch.cuda.amp.grad_scaler.GradScaler",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One call of a training step. `subject` is what it is called on (`scaler`, `loss`), `call` the call."""

    kind: str
    file: SourceFile
    call: ast.Call
    statement: ast.stmt
    subject: ast.expr
    object: str


def find_acts(program: Program) -> Iterator[Act]:
    """Every call of a training step, file by file in the order of the text."""
    for file in program.parsed():
        calls = [node for node in file.walk() if isinstance(node, ast.Call)]
        for node in sorted(calls, key=lambda one: (one.lineno, one.col_offset)):
            kind = _kind(node, file, program)
            if kind is not None:
                subject = node.func.value if isinstance(node.func, ast.Attribute) else node.func
                yield Act(
                    kind=kind,
                    file=file,
                    call=node,
                    statement=file.statement(node),
                    subject=subject,
                    object=dotted_name(subject) or "",
                )


def _kind(node: ast.Call, file: SourceFile, program: Program) -> str | None:
    if program.names(file).is_call(node, *_CLIPS):
        return CLIP
    if not isinstance(node.func, ast.Attribute):
        return None
    method = node.func.attr
    # Nothing else has `unscale_`, also where what holds the scaler is not known.
    if method in ("backward", "zero_grad", "unscale_"):
        return {"backward": BACKWARD, "zero_grad": ZERO, "unscale_": UNSCALE}[method]
    if method in ("scale", "update") and is_scaler(node.func.value, file, program):
        return {"scale": SCALE, "update": UPDATE}[method]
    if method != "step":
        return None
    if is_scaler(node.func.value, file, program):
        return SCALER_STEP
    return SCHEDULER_STEP if is_scheduler(node.func.value, file, program) else OPTIMIZER_STEP


def is_scaler(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether an expression is a GradScaler."""
    return any(name in _SCALERS for name in made_by(node, file, program))


def is_scheduler(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether an expression is a learning-rate scheduler of torch."""
    made = made_by(node, file, program)
    return any(name.startswith(_SCHEDULERS) or "_schedule" in name or name.endswith("get_scheduler") for name in made)


def is_optimizer(value: Value, program: Program) -> bool:
    """Whether an expression, or the part of it that is unpacked, is an optimizer of torch."""
    made = resolver_of(program).constructors_of(value)
    names = [program.names(one.file).qualified(one.node.func) or "" for one in made if isinstance(one.node, ast.Call)]
    return any(one.startswith(_OPTIMIZERS) and not one.startswith(_SCHEDULERS) for one in names)


def made_by(node: ast.expr, file: SourceFile, program: Program) -> Sequence[str]:
    """The qualified names of the calls that may have made the object behind an expression."""
    made = resolver_of(program).constructors_of(Value(node=node, file=file))
    return [program.names(one.file).qualified(one.node.func) or "" for one in made if isinstance(one.node, ast.Call)]


def block_with(statement: ast.stmt, file: SourceFile) -> list[ast.stmt]:
    """The list of statements that a statement stands in."""
    above = file.parents.get(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(above, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return [statement]
