"""`F.cross_entropy(logits, mask, ignore_index=VOID)` where the program itself leaves that label out elsewhere.

A marker of pixels or tokens that nobody labelled (255, -1, 0) reaches the loss, which takes every number for a class. That it
is a marker is read off the program: a comparison in a metric, the name of the constant, or labels that are padded with it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.crash import message_of, raised_at
from explainer.fix.rewrite import add_argument
from explainer.source.binding import scope_of
from explainer.source.file import SourceFile
from explainer.source.loss import Loss, find_losses
from explainer.source.name import Names, dotted_name
from explainer.source.number import number_of
from explainer.source.program import Program
from explainer.source.tree import walk

_REFUSED = re.compile(r"Target (-?\d+) is out of bounds")
_MARKS = re.compile(
    r"(?:^|_)(?:ignored?|void|unlabell?ed|unknown|unannotated|pad(?:ding)?|skip|missing|no_?label|dont_?care)(?:_|$)",
    re.IGNORECASE,
)
_LABELS = re.compile(
    r"(?:^|[_.\[])(?:labels?|masks?|targets?|tags?|truth|gt|y|classes|annotations?)(?:_|\b)", re.IGNORECASE
)
# What pads: the argument that holds the padding, by name and by position.
_PADS = {"pad_sequence": ("padding_value", 2), "pad": ("value", 3)}
_FULL = frozenset({"full", "full_like", "new_full"})
_IGNORES = frozenset({"cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loss that refused a label which the program marks as none."""
    refused = _REFUSED.search(message_of(context))
    if refused is None:
        return
    value, program = int(refused[1]), context.program
    raised = {statement for _, statement in raised_at(context)}
    losses = [one for one in program.once(find_losses) if one.name in _IGNORES and "ignore_index" not in one.options]
    losses = [one for one in losses if one.file.statement(one.call) in raised] or losses
    if len({id(one.made) for one in losses}) != 1:
        return
    loss = losses[0]
    marker = _marker(value, loss, program)
    if marker is not None:
        yield Proposal(
            edits=(add_argument(loss.file, loss.made, f"ignore_index={marker}"),),
            culprit=culprit_of(loss.file, loss.call, f"takes {marker}, which marks what has no label, for a class"),
            belief=2.4,
        )


def _marker(value: int, loss: Loss, program: Program) -> str | None:
    """How the file of the loss may write the marker: by its name, else as the number; None where nothing shows that it is one."""
    spelled = None
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            name = _named(node, value, names)
            if name is not None:
                spelled = (
                    name if file is loss.file or name in program.names(loss.file).imports else spelled or str(value)
                )
            elif _is_padding(node, value, names):
                spelled = spelled or str(value)
            elif _is_left_out(node, value, names):
                spelled = spelled or _spelled(node, file, loss, names) or str(value)
    return spelled


def _named(node: ast.AST, value: int, names: Names) -> str | None:
    """The name of a constant of a module that has the value and says that it marks something."""
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    is_constant = isinstance(target, ast.Name) and node in getattr(names.file.tree, "body", ())
    if not is_constant or not isinstance(node, ast.Assign) or not isinstance(target, ast.Name):
        return None
    return target.id if number_of(node.value, names) == value and _MARKS.search(target.id) else None


def _is_padding(node: ast.AST, value: int, names: Names) -> bool:
    """Whether a node pads labels with the value: up to a length, or all of a tensor that labels are then written into.

    `torch.full((n,), -1)` and `[-1] * n` by themselves are as likely the labels of a class.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        given, count = (node.left, node.right) if isinstance(node.left, ast.List) else (node.right, node.left)
        if not isinstance(given, ast.List) or len(given.elts) != 1 or not isinstance(count, ast.BinOp):
            return False
        return isinstance(count.op, ast.Sub) and number_of(given.elts[0], names) == value and value < 0
    if not isinstance(node, ast.Call):
        return False
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    statement = names.file.statement(node)
    target = dotted_name(statement.targets[0]) if isinstance(statement, ast.Assign) else None
    is_full = called in _FULL and target is not None and _is_written(target, node, names.file)
    keyword, index = ("fill_value", 1) if is_full else _PADS.get(called, ("", 99))
    named = [one.value for one in node.keywords if one.arg == keyword]
    padding = [*named, *node.args[index : index + 1]]
    if not padding or number_of(padding[0], names) != value:
        return False
    return value < 0 or (target is not None and _LABELS.search(target) is not None)


def _is_written(name: str, node: ast.AST, file: SourceFile) -> bool:
    """Whether labels are written into rows of a tensor: no number, which would be a class beside the one it is filled with."""
    stored = [
        one.value
        for one in walk(scope_of(node, file))
        if isinstance(one, ast.Assign)
        and isinstance(one.targets[0], ast.Subscript)
        and dotted_name(one.targets[0].value) == name
    ]
    return bool(stored) and not any(isinstance(one, (ast.Constant, ast.UnaryOp)) for one in stored)


def _is_left_out(node: ast.AST, value: int, names: Names) -> bool:
    """Whether a node is `mask != 255`, or `mask == 255` of which the opposite is taken."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return False
    sides = node.left, node.comparators[0]
    is_value = any(
        number_of(one, names) == value and _LABELS.search(names.file.segment(other))
        for one, other in (sides, sides[::-1])
    )
    above = names.file.parents.get(node)
    is_opposite = isinstance(above, ast.UnaryOp) and isinstance(above.op, (ast.Invert, ast.Not))
    return is_value and (isinstance(node.ops[0], ast.NotEq) or (isinstance(node.ops[0], ast.Eq) and is_opposite))


def _spelled(node: ast.AST, file: SourceFile, loss: Loss, names: Names) -> str | None:
    if file is not loss.file or not isinstance(node, ast.Compare):
        return None
    sides = [one for one in (node.left, node.comparators[0]) if number_of(one, names) is not None]
    return file.segment(sides[0]) if sides else None
