"""`F.cross_entropy(logits, torch.bucketize(stars, LEVELS))`: a target that is a value among levels becomes the index of that level.

The program's evaluation tells that the classes are levels: it reads `LEVELS[logits.argmax(1)]`, or takes the mean `probs @ LEVELS`. A cast
would cut values off that lie between whole numbers, and leave some classes without a target. Only for levels that are written in order.
"""

from __future__ import annotations

import ast
import itertools
import os
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import spell
from explainer.source.file import SourceFile
from explainer.source.loss.loss import loss_at
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_COPIES = ("torch.from_numpy", "torch.tensor", "torch.as_tensor", "numpy.array", "numpy.asarray")
_RANGES = ("torch.arange", "torch.linspace", "numpy.arange", "numpy.linspace")
_DEPTH = 4


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loss that refused its target."""
    if not context.has_failed:
        return
    for file, statement in list(raised_at(context))[:1]:
        losses = [loss_at(one, file, context.program) for one in walk(statement) if isinstance(one, ast.Call)]
        wanted = [one for one in losses if one is not None and one.takes_classes]
        name = dotted_name(wanted[0].target) if len(wanted) == 1 else None
        tables = {table for one in _decoded(context.program) if (table := _table(one, file, context.program))}
        tensor = seen(wanted[0].target, context) if name else None
        is_float = tensor is not None and tensor.dtype.startswith("float")
        if name is None or not is_float or len(tables) != 1:
            continue
        (table,) = tables
        names = context.program.names(file)
        levels = f"{spell(names, 'torch.as_tensor')}({table}, dtype={name}.dtype, device={name}.device)"
        target = wanted[0].target
        yield Proposal(
            edits=(edit_of(file, target, f"{spell(names, 'torch.bucketize')}({name}, {levels})"),),
            culprit=culprit_of(file, wanted[0].call, f"takes the index of a level of `{table}`, and gets the level"),
            belief=2.6,
        )


def _decoded(program: Program) -> Iterator[Value]:
    """What the program reads by the class that it predicts, or takes the mean of by the classes' probabilities."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Subscript) and _calls(node.slice, "argmax"):
                yield Value(node.value, file)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                behind = [one.node for one in resolver_of(program).behind(Value(node.left, file))]
                if any(_calls(one, "softmax") for one in (node.left, *behind)):
                    yield Value(node.right, file)


def _calls(node: ast.AST, name: str) -> bool:
    """Whether a method or function of a name is called in an expression: `logits.softmax(-1)`, `torch.softmax(logits, -1)`."""
    calls = (one for one in walk(node) if isinstance(one, ast.Call))
    return any(getattr(one.func, "attr", getattr(one.func, "id", "")) == name for one in calls)


def _table(value: Value, at: SourceFile, program: Program, depth: int = 0) -> str | None:
    """How a file names the levels that an expression stands for: a constant of a module; None for others."""
    if isinstance(value.node, ast.Call) and value.node.args:
        is_copy = program.names(value.file).is_call(value.node, *_COPIES)
        inner = Value(value.node.args[0], value.file, value.arguments)
        return _table(inner, at, program, depth + 1) if is_copy and depth < _DEPTH else None
    if not isinstance(value.node, ast.Name) or depth > _DEPTH:
        return None
    found = list(resolver_of(program).behind(value))
    if len(found) != 1:
        return None
    (made,) = found
    where = program.names(made.file)
    if where.function_of(made.node) is not None:
        return _table(made, at, program, depth + 1)
    constant = next((dotted_name(one) for one in getattr(made.file.statement(made.node), "targets", ())), None)
    if constant is None or not _is_in_order(made, program):
        return None
    imports = program.names(at).imports
    module = os.path.basename(made.file.path).removesuffix(".py")
    named = next((alias for alias, full in imports.items() if full.split(".")[-2:] == [module, constant]), None)
    return constant if made.file is at else named


def _is_in_order(made: Value, program: Program) -> bool:
    """Whether levels are written so that they rise: a range, also times or plus a number, or a list of numbers."""
    node = made.node
    while isinstance(node, ast.BinOp):
        is_shifted = isinstance(node.op, (ast.Add, ast.Sub)) or _is_positive(node.right, program.names(made.file))
        if not isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)) or not is_shifted:
            return False
        node = node.left
    names = program.names(made.file)
    if names.is_call(node, *_COPIES) and isinstance(node, ast.Call) and node.args:
        node = node.args[0]
    if names.is_call(node, *_RANGES):
        return True
    if not isinstance(node, (ast.List, ast.Tuple)):
        return False
    try:
        numbers = ast.literal_eval(node)
    except ValueError:
        return False
    return len(numbers) > 1 and all(
        isinstance(a, (int, float)) and isinstance(b, (int, float)) and a < b for a, b in itertools.pairwise(numbers)
    )


def _is_positive(node: ast.expr, names: Names) -> bool:
    number = number_of(node, names)
    return number is not None and number > 0
