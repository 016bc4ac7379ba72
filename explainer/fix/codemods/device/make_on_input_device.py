"""A tensor made in `forward` goes where its input is: `torch.zeros(n)` becomes `torch.zeros(n, device=x.device)`.

A constant of a module in a plain attribute becomes a buffer, which `module.to(device)` moves; a batch that the loop does not move
is moved.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.blame import crash_frames
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.network.constant_buffer import propose_buffers
from explainer.fix.text.rewrite import add_argument, put_method
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.network.precision import is_module
from explainer.source.tree import walk
from explainer.source.value.constant_tensor import is_maker
from explainer.source.value.flow import flow_of

_TENSOR = frozenset(
    {"shape", "size", "device", "dtype", "dim", "masked_fill", "view", "reshape", "unsqueeze", "squeeze", "sum", "mean", "new_zeros"}
    | {"transpose", "permute", "flatten", "softmax", "argmax", "gather", "expand", "matmul", "float", "long", "chunk"}
)  # fmt: skip


def propose(context: Context) -> Iterator[Proposal]:
    """Edits for tensors made without a device, in methods and in the functions that the traceback names."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        for function in names.functions:
            owner = names.class_of(function)
            if owner is None or function.name != "__init__":
                yield from _made(function, file, context)
    yield from propose_buffers(context)
    yield from _unmoved(context)


def _made(function: Function, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """Tensors that a function makes, beside a parameter that is a tensor."""
    source = _tensor_parameter(function, file, context)
    frames = crash_frames(file, context)
    is_near = any(function.lineno <= line <= (function.end_lineno or 0) for line in frames)
    if source is None or not is_near:
        return
    for node in walk(function):
        if isinstance(node, ast.Call) and is_maker(node, file, context.program) and not _is_moved(node, file):
            line = node.lineno in frames
            yield Proposal(
                edits=(add_argument(file, node, f"device={source}.device"),),
                culprit=culprit_of(file, node, f"makes a tensor on the CPU, also where `{source}` is on the GPU"),
                belief=1.5 if line else 1.0,
            )


def _is_moved(node: ast.Call, file: SourceFile) -> bool:
    """Whether the new tensor is sent somewhere in the same expression: `torch.zeros(n).to(x.device)`."""
    above = file.parents.get(node)
    while isinstance(above, ast.expr):
        if isinstance(above, ast.Attribute) and above.attr in ("to", "cuda", "type_as", "shape", "item"):
            return True
        above = file.parents.get(above)
    return False


def _tensor_parameter(function: Function, file: SourceFile, context: Context) -> str | None:
    """The first parameter that is used as a tensor: called a method of tensors on, indexed, or given to a module."""
    given = [one.arg for one in (*function.args.posonlyargs, *function.args.args) if one.arg not in ("self", "cls")]
    for name in given:
        for node in walk(function):
            if isinstance(node, ast.Attribute) and dotted_name(node.value) == name and node.attr in _TENSOR:
                return name
    flow = flow_of(context.program)
    for name in given:
        for node in walk(function):
            is_module_call = isinstance(node, ast.Call) and is_module(node.func, file, context.program)
            if is_module_call and isinstance(node, ast.Call) and any(dotted_name(one) == name for one in node.args):
                return name
            if (
                isinstance(node, ast.Name)
                and node.id == name
                and isinstance(node.ctx, ast.Load)
                and flow.reach_of(node, file) > 1
            ):
                return name
    return None


def _unmoved(context: Context) -> Iterator[Proposal]:
    """A batch that a loop hands to a module as it comes from the loader, where the program has a `device`."""
    for file in context.program.parsed():
        frames = crash_frames(file, context)
        moved = [_device(node) for node in file.walk() if isinstance(node, ast.Call)]
        devices = [one for one in moved if one]
        for node in file.walk() if frames and devices else ():
            if (
                not isinstance(node, ast.Call)
                or node.lineno not in frames
                or not is_module(node.func, file, context.program)
            ):
                continue
            loop = file.enclosing(node, ast.For)
            bound = (
                {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}
                if isinstance(loop, ast.For)
                else set()
            )
            for one in node.args:
                if isinstance(one, ast.Name) and one.id in bound and loop is not None and not _is_rebound(one.id, loop):
                    yield Proposal(
                        edits=(put_method(file, one, f".to({devices[0]})"),),
                        culprit=culprit_of(file, node, f"hands `{one.id}` over as the loader made it, on the CPU"),
                        belief=1.0,
                        title=f"Move `{one.id}` where the model is: `{one.id}.to({devices[0]})`",
                    )


def _is_rebound(name: str, loop: ast.AST) -> bool:
    return any(
        isinstance(one, ast.Assign)
        and any(dotted_name(part) == name for target in one.targets for part in walk(target))
        for one in walk(loop)
    )


def _device(node: ast.Call) -> str | None:
    """What `model.to(device)` names."""
    is_move = isinstance(node.func, ast.Attribute) and node.func.attr == "to" and len(node.args) == 1
    name = dotted_name(node.args[0]) if is_move else None
    return name if name and "device" in name.lower() else None
