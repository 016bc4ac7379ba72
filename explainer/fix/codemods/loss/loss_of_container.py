"""`backward` is called on the loss in what a model gave back: `outputs.backward()` becomes `outputs.loss.backward()`.

Of an output object it is `.loss`, of a dictionary its `"loss"`, of a list of losses their sum, of a tuple the element that the
function returns under the name of a loss. Where the elements of a tuple are taken from an output object, `loss, logits = model(x)`
gives its keys, and its first values are taken instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, reaching
from explainer.source.value.resolve import resolver_of

_HOLDER = r"list|tuple|dict|str|\w*Output\w*"
_MESSAGE = re.compile(rf"'({_HOLDER})' object has no attribute 'backward'")
_OPERAND = re.compile(r"unsupported operand type\(s\) for \S+: '(\w+)' and '(\w+)'")
_LOSS = re.compile(r"loss|objective|criterion", re.IGNORECASE)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for what holds the loss at the failing line, or for where its elements are taken."""
    said = message_of(context)
    found, operands = _MESSAGE.search(said), _OPERAND.search(said)
    for file, statement in raised_at(context):
        if found is not None:
            for node in walk(statement):
                if isinstance(node, ast.Attribute) and node.attr == "backward":
                    yield from _taken(found[1], node.value, file, context.program)
        elif "too many values to unpack" in said:
            yield from _first_of_call(statement, file)
        elif operands is not None:
            for node in walk(statement):
                if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
                    sides = zip(operands.groups(), (node.left, node.right), strict=True)
                    yield from (
                        _written(file, side, ".loss", "computes with the whole output, and not with its loss")
                        for name, side in sides
                        if re.fullmatch(r"\w+Output\w*", name)
                    )


def _taken(kind: str, node: ast.expr, file: SourceFile, program: Program) -> Iterator[Proposal]:
    if kind == "str":
        yield from _first_values(node, file)
    elif kind == "list":
        yield Proposal(
            edits=(edit_of(file, node, f"sum({file.segment(node)})"),),
            culprit=culprit_of(file, node, "is a list of losses, which has no backward"),
            belief=2.0,
            because="the gradient of a sum is the sum of the gradients",
        )
    elif kind in ("dict", "tuple"):
        part = _part_of_dict(node, file, program) if kind == "dict" else _part_of_tuple(node, file, program)
        if part is not None:
            yield _written(file, node, part, f"is the whole {kind}, of which the loss is `{part}`")
    else:
        yield _written(file, node, ".loss", "is the whole output, of which the loss is `.loss`")


def _written(file: SourceFile, node: ast.expr, part: str, why: str) -> Proposal:
    return Proposal(edits=(put_method(file, node, part),), culprit=culprit_of(file, node, why), belief=2.0)


def _held(node: ast.expr, file: SourceFile, program: Program) -> Iterator[Value]:
    """The expressions that a value stands for, also those that the function returns which makes it."""
    resolver, value = resolver_of(program), Value(node, file)
    for one in [value, *resolver.behind(value)]:
        call = one.node if isinstance(one.node, ast.Call) else None
        target = resolver.function_of(call, one) if call is not None else None
        yield from resolver.returns_of(target, call, one) if target is not None and call is not None else [one]


def _part_of_dict(node: ast.expr, file: SourceFile, program: Program) -> str | None:
    """`["loss"]`, where that is a key of the dictionary, or no dictionary is written and an output is one."""
    keys = [
        key.value
        for one in _held(node, file, program)
        for key in (one.node.keys if isinstance(one.node, ast.Dict) else ())
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    ]
    found = [one for one in keys if one == "loss"] or [one for one in keys if _LOSS.search(one)]
    return f'["{found[0]}"]' if len(set(found)) == 1 else None


def _part_of_tuple(node: ast.expr, file: SourceFile, program: Program) -> str | None:
    """`[0]`, where each tuple behind a value has a loss at one place, by its name."""
    places = set()
    for one in _held(node, file, program):
        if isinstance(one.node, ast.Tuple):
            losses = [at for at, part in enumerate(one.node.elts) if _LOSS.search(ast.unparse(part))]
            places.add(losses[0] if len(losses) == 1 else -1)
    return f"[{places.pop()}]" if len(places) == 1 and -1 not in places else None


def _first_values(node: ast.expr, file: SourceFile) -> Iterator[Proposal]:
    """Where an element was bound that is a key of an output object, or of a dictionary."""
    bounds = reaching(node.id, node, file) if isinstance(node, ast.Name) else []
    if len(bounds) == 1:
        yield from _first_of_call(bounds[0].statement, file)


def _first_of_call(made: ast.AST, file: SourceFile) -> Iterator[Proposal]:
    """`loss, logits = model(**batch)[:2]`: iterating an output object gives its keys, and its slice the values."""
    target = made.targets[0] if isinstance(made, ast.Assign) and len(made.targets) == 1 else None
    if isinstance(made, ast.Assign) and isinstance(target, (ast.Tuple, ast.List)) and isinstance(made.value, ast.Call):
        names = [ast.unparse(one) for one in target.elts]
        if any(isinstance(one, ast.Starred) for one in target.elts) or not _LOSS.search(names[0]):
            return
        yield Proposal(
            edits=(put_method(file, made.value, f"[:{len(names)}]"),),
            culprit=culprit_of(file, made.value, "gives an output object, of which unpacking takes the keys"),
            belief=2.0,
        )
