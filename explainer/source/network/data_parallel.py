"""Where a program hands a model to DistributedDataParallel: in a call of its own, or through Accelerate's `prepare`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_WRAPPERS = ("torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel")
_ACCELERATORS = ("accelerate.Accelerator", "accelerate.accelerator.Accelerator")
_PREPARES = ("prepare", "prepare_model")


@dataclass(frozen=True)
class Wrapping:
    """A call that wraps what `model` stands for; `accelerator` is the call that made what `prepare` is asked of."""

    call: ast.Call
    file: SourceFile
    model: ast.expr
    accelerator: Value | None = None


def wrappings(program: Program) -> Iterator[Wrapping]:
    """Every such call, file by file; one for each thing that `prepare` is given, of which only modules are wrapped."""
    for file in program.parsed():
        for node in file.walk():
            if not isinstance(node, ast.Call) or not node.args:
                continue
            if program.names(file).is_call(node, *_WRAPPERS):
                yield Wrapping(node, file, node.args[0])
            elif isinstance(node.func, ast.Attribute) and node.func.attr in _PREPARES:
                made = _accelerator(node.func.value, file, program)
                given = [one for one in node.args if not isinstance(one, ast.Starred)]
                yield from (Wrapping(node, file, one, made) for one in given if made is not None)


def _accelerator(node: ast.expr, file: SourceFile, program: Program) -> Value | None:
    """The one call of `Accelerator` that an expression stands for."""
    made = resolver_of(program).constructors_of(Value(node, file))
    found = [one for one in made if program.names(one.file).is_call(one.node, *_ACCELERATORS)]
    return found[0] if len({id(one.node) for one in found}) == 1 else None
