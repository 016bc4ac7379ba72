"""Where a program hands a model to DistributedDataParallel: in a call of its own, by Accelerate's `prepare`, by a trainer."""

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
_TRAINERS = ("lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer")
_FABRICS = ("lightning.Fabric", "lightning.fabric.Fabric", "lightning_fabric.Fabric")
_FITS = ("fit", "setup", "setup_module")


@dataclass(frozen=True)
class Wrapping:
    """A call that wraps what `model` stands for.

    `accelerator` is the call that made what `prepare` is asked of, `trainer` that of a trainer of Lightning or a Fabric,
    `arguments` that of the arguments of a trainer of transformers or TRL.
    """

    call: ast.Call
    file: SourceFile
    model: ast.expr
    accelerator: Value | None = None
    trainer: Value | None = None
    arguments: Value | None = None


def wrappings(program: Program) -> Iterator[Wrapping]:
    """Every such call, file by file; one for each thing that `prepare` is given, of which only modules are wrapped."""
    for file in program.parsed():
        for node in file.walk():
            if not isinstance(node, ast.Call):
                continue
            yield from _fitted(node, file, program)
            yield from _handed_over(node, file, program)
            if not node.args:
                continue
            if program.names(file).is_call(node, *_WRAPPERS):
                yield Wrapping(node, file, node.args[0])
            elif isinstance(node.func, ast.Attribute) and node.func.attr in _PREPARES:
                made = _made_by(node.func.value, file, program, _ACCELERATORS)
                given = [one for one in node.args if not isinstance(one, ast.Starred)]
                yield from (Wrapping(node, file, one, made) for one in given if made is not None)


def _fitted(node: ast.Call, file: SourceFile, program: Program) -> Iterator[Wrapping]:
    """`trainer.fit(model, loader)`, `fabric.setup(model, optimizer)`."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _FITS:
        return
    named = next((one.value for one in node.keywords if one.arg in ("model", "module")), None)
    model = node.args[0] if node.args and not isinstance(node.args[0], ast.Starred) else named
    made = _made_by(node.func.value, file, program, _TRAINERS if node.func.attr == "fit" else _FABRICS)
    if model is not None and made is not None:
        yield Wrapping(node, file, model, trainer=made)


def _handed_over(node: ast.Call, file: SourceFile, program: Program) -> Iterator[Wrapping]:
    """`Trainer(model=model, args=args)`, also of a class of the program that derives from one of a library."""
    called = program.names(file).qualified(node.func) or ""
    found = resolver_of(program).find_class(node.func, file)
    bases = [program.names(found[0]).qualified(one) or "" for one in found[1].bases] if found is not None else []
    if not any(one.endswith("Trainer") and one.startswith(("transformers.", "trl.")) for one in (called, *bases)):
        return
    named = {one.arg: one.value for one in node.keywords}
    model = node.args[0] if node.args and not isinstance(node.args[0], ast.Starred) else named.get("model")
    args = node.args[1] if len(node.args) > 1 else named.get("args")
    made = resolver_of(program).constructors_of(Value(args, file)) if args is not None else []
    calls = {id(one.node): one for one in made if isinstance(one.node, ast.Call)}
    if model is not None and len(calls) == 1:
        yield Wrapping(node, file, model, arguments=next(iter(calls.values())))


def _made_by(node: ast.expr, file: SourceFile, program: Program, names: tuple[str, ...]) -> Value | None:
    """The one call of a class of these names that an expression stands for."""
    made = resolver_of(program).constructors_of(Value(node, file))
    found = [one for one in made if program.names(one.file).is_call(one.node, *names)]
    return found[0] if len({id(one.node) for one in found}) == 1 else None
