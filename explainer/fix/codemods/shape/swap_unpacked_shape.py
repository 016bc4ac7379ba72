"""`in_features, out_features = base.weight.shape` for `out_features, in_features = ...`, or the other way round.

`nn.Linear` keeps its weight as `[out, in]`, transformers' `Conv1D` (GPT-2) as `[in, out]`. Where a product refuses a parameter
that was made by the two names, they stand for each other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.tree import walk

_REFUSED = re.compile(r"mat1 and mat2 shapes cannot be multiplied \(\d+x\d+ and \d+x\d+\)")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the shape of a weight that the class which raised takes apart."""
    if not _REFUSED.search(message_of(context)):
        return
    for file, statement in list(raised_at(context))[:1]:
        owner = context.program.names(file).class_of(statement)
        for one in walk(owner) if owner is not None else ():
            names = _unpacked(one)
            if isinstance(one, ast.Assign) and names is not None and _are_sizes(names, owner, one):
                first, second = names
                yield Proposal(
                    edits=(edit_of(file, one.targets[0], _swapped(file, one, first, second)),),
                    culprit=culprit_of(
                        file, one, f"takes `{first.id}` for the first size of a weight, and it is the second"
                    ),
                    belief=1.8,
                )


def _unpacked(node: ast.AST) -> tuple[ast.Name, ast.Name] | None:
    """The two names of `out, in = layer.weight.shape`, or of `.size()`."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Tuple):
        return None
    value = node.value.func if isinstance(node.value, ast.Call) and not node.value.args else node.value
    is_shape = isinstance(value, ast.Attribute) and value.attr in ("shape", "size")
    weight = value.value if isinstance(value, ast.Attribute) else None
    names = node.targets[0].elts
    if not is_shape or not isinstance(weight, ast.Attribute) or weight.attr != "weight" or len(names) != 2:
        return None
    first, second = names
    return (first, second) if isinstance(first, ast.Name) and isinstance(second, ast.Name) else None


def _are_sizes(names: tuple[ast.Name, ast.Name], owner: ast.ClassDef | None, at: ast.Assign) -> bool:
    """Whether both names are read behind the statement, to make something of these sizes."""
    reads = {
        one.id for one in walk(owner) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one.lineno > at.lineno
    } if owner is not None else set[str]()  # fmt: skip
    return {one.id for one in names} <= reads


def _swapped(file: SourceFile, node: ast.Assign, first: ast.Name, second: ast.Name) -> str:
    text = f"{second.id}, {first.id}"
    return f"({text})" if file.segment(node.targets[0]).startswith("(") else text
