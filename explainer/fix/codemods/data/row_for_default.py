"""`nn.Embedding(len(codes) + 1, d)`: what is in no vocabulary gets the code behind the last, `codes.get(word, len(codes))`.

The one other length of that vocabulary counts the rows; of several the one that `__len__` returns, or that makes a table. Where a
loss refuses such a code it is shown only: what has no class may be a class, may be ignored, or is one of the others.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk

_TABLES = ("torch.nn.Embedding", "torch.nn.EmbeddingBag", "torch.nn.Linear")

_OF_CLASSES = re.compile(r"Target -?\d+ is out of bounds|n_classes")
_CLASS = (
    "right where what is not listed is a class of its own; it may as well be ignored, or belong to one that is listed"
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the length of each vocabulary whose codes go one further."""
    if not context.has_failed:
        return
    is_class = _OF_CLASSES.search(message_of(context)) is not None
    for file in context.program.parsed():
        for call in file.walk():
            default = _default(call)
            if default is None:
                continue
            found = _lengths(default, file)
            meant = found if len(found) == 1 else [one for one in found if _counts_rows(one, file, context)]
            if len(meant) == 1:
                yield Proposal(
                    edits=(edit_of(file, meant[0], f"{file.segment(meant[0])} + 1"),),
                    culprit=culprit_of(
                        file,
                        meant[0],
                        f"counts the codes without the one that line {default.lineno} gives to what has none",
                    ),
                    belief=2.0,
                    is_origin=True,
                    applicability="display" if is_class else None,
                    because=_CLASS if is_class else None,
                )


def _default(node: ast.AST) -> ast.Call | None:
    """`len(codes)` of `codes.get(word, len(codes))`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or len(node.args) != 2:
        return None
    owner, default = dotted_name(node.func.value), node.args[1]
    is_length = isinstance(default, ast.Call) and dotted_name(default.func) == "len" and len(default.args) == 1
    if node.func.attr != "get" or owner is None or not is_length or not isinstance(default, ast.Call):
        return None
    return default if dotted_name(default.args[0]) == owner else None


def _lengths(default: ast.Call, file: SourceFile) -> list[ast.Call]:
    """The other lengths of a vocabulary, by its name, to which nothing is added; none where something is added to one."""
    name = dotted_name(default.args[0]) or ""
    scope = file.enclosing(default, ast.ClassDef) if name.startswith("self.") else file.tree
    found = []
    for node in walk(scope) if scope is not None else ():
        is_length = isinstance(node, ast.Call) and dotted_name(node.func) == "len" and len(node.args) == 1
        if not is_length or not isinstance(node, ast.Call) or node is default or dotted_name(node.args[0]) != name:
            continue
        above = file.parents.get(node)
        if isinstance(above, ast.BinOp):
            return []
        is_default = isinstance(above, ast.Call) and _default(above) is node
        if not is_default:
            found.append(node)
    return found


def _counts_rows(node: ast.Call, file: SourceFile, context: Context) -> bool:
    above = file.parents.get(node)
    if isinstance(above, ast.Return):
        function = context.program.names(file).function_of(node)
        return function is not None and function.name == "__len__"
    return isinstance(above, ast.Call) and context.program.names(file).is_call(above, *_TABLES)
