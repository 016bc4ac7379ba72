"""`torch.autocast(device)` becomes `torch.autocast(device.type)`: it takes the name of a device type, not a `torch.device`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.loop.step import made_by
from explainer.source.name import dotted_name

_CALLS = ("torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast", "torch.amp.GradScaler")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each call that is given a device."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if not isinstance(node, ast.Call) or not names.is_call(node, *_CALLS):
                continue
            given = [*node.args[:1], *(one.value for one in node.keywords if one.arg in ("device_type", "device"))]
            for one in given[:1]:
                if _is_device(one, file, context):
                    yield Proposal(
                        edits=(put_method(file, one, ".type"),),
                        culprit=culprit_of(
                            file, node, "is given a `torch.device` where it takes the name of a device type"
                        ),
                        belief=1.5,
                    )


def _is_device(node: ast.expr, file: SourceFile, context: Context) -> bool:
    """Whether an expression is a `torch.device`: made by it, or the device of a tensor."""
    if isinstance(node, ast.Attribute) and node.attr == "device" and dotted_name(node.value) not in (None, "torch"):
        return True
    if isinstance(node, ast.Call):
        return context.program.names(file).is_call(node, "torch.device")
    return "torch.device" in made_by(node, file, context.program)
