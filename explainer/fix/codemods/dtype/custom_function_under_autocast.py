"""A custom Function that runs under autocast gets `custom_fwd` and `custom_bwd`, so that its backward runs in the same state.

Autocast is off in a backward: what the forward multiplied in half precision meets float32 there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import find_calls

_BASES = ("torch.autograd.Function", "torch.autograd.function.Function")
_REGIONS = ("torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast")
_DEVICES = ("cuda", "cpu", "xpu", "mps")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the Function in whose backward two dtypes met, where the program runs under autocast."""
    program = context.program
    for file, statement in list(raised_at(context))[:1]:
        names = program.names(file)
        owner, device = names.class_of(statement), _device(program)
        if owner is None or device is None or not any(names.qualified(one) in _BASES for one in owner.bases):
            continue
        methods = {one.name: one for one in owner.body if isinstance(one, ast.FunctionDef)}
        forward, backward = methods.get("forward"), methods.get("backward")
        if forward is None or backward is None or "setup_context" in methods or statement not in _statements(backward):
            continue
        if any("custom_" in (dotted_name(getattr(one, "func", one)) or "") for one in forward.decorator_list):
            continue
        yield Proposal(
            edits=tuple(
                _decorated(file, method, f'@{spell(names, f"torch.amp.{name}")}(device_type="{device}")')
                for method, name in ((forward, "custom_fwd"), (backward, "custom_bwd"))
            ),
            culprit=culprit_of(file, statement, "runs outside of the autocast region that its forward was in"),
            belief=3.0,
            is_origin=True,
        )


def _statements(function: Function) -> set[ast.AST]:
    return {one for one in walk(function) if isinstance(one, ast.stmt)}


def _decorated(file: SourceFile, function: Function, decorator: str) -> Edit:
    """The innermost decorator of a function, right above its `def`."""
    start = file.line_start(function.lineno)
    return Edit(file=file.path, start=start, end=start, new=f"{file.indent(function.lineno)}{decorator}{file.newline}")


def _device(program: Program) -> str | None:
    """The device type of the program's autocast regions, where they name one."""
    found = set()
    for file, call in find_calls(program):
        called = program.names(file).qualified(call.func) or ""
        if called not in _REGIONS:
            continue
        named = next(
            (one.value for one in call.keywords if one.arg == "device_type"), call.args[0] if call.args else None
        )
        own = called.split(".")[1]
        found.add(own if own in _DEVICES else getattr(named, "value", None))
    (device,) = found if len(found) == 1 else (None,)
    return device if device in _DEVICES else None
