"""`torch.func.replace_all_batch_norm_modules_(model)` where a transform of torch.func meets a batch normalisation's running statistics.

They are written in place, and belong to no level of the transform. In training nothing changes: each batch is normalised by itself.
The call stands behind the one that makes the model which `functional_call` is given, before its parameters and buffers are taken.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after
from explainer.fix.text.rewrite import spell
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.module import is_module
from explainer.source.program import Program
from explainer.source.value.binding import Value, find_calls
from explainer.source.value.resolve import resolver_of

_BY_NAME = "Batch norm got a batched tensor as input while the running_mean"
_BY_FRAME = "would mutate a captured Tensor"
_FRAME = "torch/nn/modules/batchnorm.py"
_CALL = ("torch.func.functional_call", "torch.nn.utils.stateless.functional_call")
_WHY = "makes a batch normalisation that writes running statistics, which no transform owns"
_REPLACE = "torch.func.replace_all_batch_norm_modules_"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for each model that a transform runs."""
    message = message_of(context)
    if _BY_NAME not in message and not (_BY_FRAME in message and _is_in_norm(context)):
        return
    program = context.program
    if any(program.names(file).is_call(call, _REPLACE) for file, call in find_calls(program)):
        return
    norm = next(((path, one) for path, one in find_calls(program) if _is_norm(one, path, program)), None)
    done: set[ast.stmt] = set()
    for file, name, statement in _models(program):
        if statement not in done:
            done.add(statement)
            text = f"{spell(program.names(file), _REPLACE)}({name})"
            where, made = norm or (file, statement)
            culprit = culprit_of(where, made, _WHY)
            yield Proposal(edits=(insert_after(file, statement, text),), culprit=culprit, belief=1.5)


def _is_norm(call: ast.Call, file: SourceFile, program: Program) -> bool:
    return (program.names(file).qualified(call.func) or "").startswith("torch.nn.BatchNorm")


def _is_in_norm(context: Context) -> bool:
    frames = [frame for record in context.incident.exceptions for frame in record.frames]
    return any(_FRAME in frame.file.replace("\\", "/") for frame in frames)


def _models(program: Program) -> Iterator[tuple[SourceFile, str, ast.stmt]]:
    """The names that models get where they are made, of those that are run with other parameters.

    Where a transform calls the function that gets the model, it is the only one that the program makes.
    """
    calls = [(file, call) for file, call in find_calls(program) if program.names(file).is_call(call, *_CALL)]
    found = [
        one
        for file, call in calls
        for made in (resolver_of(program).constructors_of(Value(call.args[0], file)) if call.args else ())
        if (one := _named(made.node, made.file)) is not None
    ]
    if found or not calls:
        yield from found
        return
    made = [
        one
        for file, call in find_calls(program)
        if (one := _named(call, file)) is not None
        and resolver_of(program).find_class(call.func, file) is not None
        and is_module(Value(call, file), program)
    ]
    yield from made if len(made) == 1 else ()


def _named(made: ast.AST, file: SourceFile) -> tuple[SourceFile, str, ast.stmt] | None:
    """The statement that gives what a call makes one name; None for the parts of other modules."""
    statement = file.statement(made)
    if not isinstance(statement, ast.Assign) or statement.value is not made or len(statement.targets) != 1:
        return None
    name = dotted_name(statement.targets[0])
    return (file, name, statement) if name is not None and not name.startswith("self.") else None
