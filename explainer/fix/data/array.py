"""What code that makes data hands to NumPy: the tensors that have a graph there, and the modules that give it to them.

What a data set computes is data. A module that nothing trains has no use for a graph; of one that an optimizer has, no array is meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.clue.failure import statements_at
from explainer.fix.codemod import Context
from explainer.model.incident import Frame
from explainer.source.data.kept import DATA_SETS
from explainer.source.data.loader import find_loaders, loops_over, worked_by
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.module import inherits_module, is_module
from explainer.source.network.never_trained import is_never_trained
from explainer.source.network.trained_apart import is_trained_apart
from explainer.source.program import Program
from explainer.source.value.binding import Value, bounds_of, scope_of, walk_scope
from explainer.source.value.provenance import provenance_of

_LOADS = "torch/utils/data/"
_LISTS = (ast.List, ast.ListComp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
Place = tuple[SourceFile, ast.expr]


def is_data_code(node: ast.AST, file: SourceFile, context: Context) -> bool:
    """Whether a node stands in what a loader runs, by the frames of the failure or by the program, or in a data set's class."""
    program = context.program
    owner, function = program.names(file).class_of(node), file.enclosing(node, *_FUNCTIONS)
    if owner is not None and any(
        (program.names(file).qualified(one) or "").startswith(DATA_SETS) for one in owner.bases
    ):
        return True
    ran = [
        one for record in context.incident.exceptions for one in statements_at(_behind_loader(record.frames), context)
    ]
    in_frames = any(where.enclosing(one, *_FUNCTIONS) is function for where, one in ran)
    return function is not None and (in_frames or function in program.once(_worked))


def data_arrays(operands: Sequence[ast.expr], file: SourceFile, context: Context) -> list[Place] | None:
    """Where the operands that data code hands to NumPy are detached: where a module's output is taken, else each by itself.

    Empty where a module is trained that they come of; None where no module gives them a graph.
    """
    provenance = provenance_of(context.program)
    given = [Value(part, file) for one in operands for part in _parts(one)]
    live = [one for one in given if provenance.trace(one).live]
    rows = [one for one in _rows(operands, file, context.program) if provenance.trace(one).live] if not live else []
    ran = list(dict.fromkeys(one for value in live or rows for one in _modules(value, context.program)))
    loops = _loops(operands[0], file, context.program)
    if not all(
        is_never_trained(one, context.program) or (loops and is_trained_apart(one, loops, context.program))
        for one in (Value(module, where) for where, _, module in ran)
    ):
        return []
    outputs: list[Place] = [(where, call) for where, call, _ in ran]
    is_known = bool(ran) and all(is_data_code(call, where, context) for where, call in outputs)
    if is_known and (len(ran) == 1 or rows or any(is_list(one.node, file) for one in live)):
        return outputs
    is_alone = bool(ran) and not rows and not any(is_list(one.node, file) for one in live)
    return [(file, one.node) for one in live] if is_alone else None


def is_list(value: ast.expr, file: SourceFile) -> bool:
    """Whether a name stands for a list, or an expression is one."""
    name = dotted_name(value)
    made = [value, *(one.node for one in bounds_of(scope_of(value, file)) if one.name == name and not one.fills)]
    return any(isinstance(one, _LISTS) for one in made)


def _parts(operand: ast.expr) -> list[ast.expr]:
    """The elements of a display, what a comprehension makes, else the operand itself."""
    if isinstance(operand, (ast.List, ast.Tuple)):
        return operand.elts
    return [operand.elt] if isinstance(operand, (ast.ListComp, ast.GeneratorExp)) else [operand]


def _modules(value: Value, program: Program) -> Iterator[tuple[SourceFile, ast.expr, ast.expr]]:
    """The calls outside of modules that run a module, itself or by a method, and that give a value its graph; and the module."""
    for source in provenance_of(program).trace(value).sources:
        file = program.file_of(source)
        if file is None or not isinstance(source, ast.Call):
            continue
        around, func = program.names(file).class_of(source), source.func
        if around is not None and inherits_module(around, file, program):
            continue
        owner = func.value if isinstance(func, ast.Attribute) else None
        module = next((one for one in (func, owner) if one is not None and is_module(Value(one, file), program)), None)
        if module is not None:
            yield file, source, module


def _rows(operands: Sequence[ast.expr], file: SourceFile, program: Program) -> Iterator[Value]:
    """What the data sets make whose rows the collate function around the operands is given."""
    function = file.enclosing(operands[0], *_FUNCTIONS)
    for loader in find_loaders(program):
        worked = list(worked_by(loader, program))
        if not any(one.is_batch and one.function is function for one in worked):
            continue
        for one in worked:
            for part in walk_scope(one.function) if not one.is_batch else ():
                if isinstance(part, (ast.Return, ast.Yield)) and part.value is not None:
                    yield Value(part.value, one.file)


def _loops(node: ast.AST, file: SourceFile, program: Program) -> list[ast.For]:
    """The loops over the batches that the function around a node makes; none where others take them too."""
    function, found = file.enclosing(node, *_FUNCTIONS), list[ast.For]()
    for loader in find_loaders(program):
        if any(one.function is function for one in worked_by(loader, program)):
            loops = loops_over(loader, program)
            if loops is None:
                return []
            found.extend(loop for _, loop, _ in loops)
    return found


def _behind_loader(frames: Sequence[Frame]) -> Sequence[Frame]:
    """The user's frames below the last one of torch's loaders."""
    at = [place for place, one in enumerate(frames) if one.library == "torch" and _LOADS in one.file.replace("\\", "/")]
    return [one for one in frames[at[-1] :] if one.library is None] if at else []


def _worked(program: Program) -> Iterator[ast.AST]:
    for loader in find_loaders(program):
        yield from (one.function for one in worked_by(loader, program))
