"""Detaches all parts of a kept state where only some are: `self.state = (h.detach(), c)`.

One part that is left ties this step's graph to the next one's as firmly as all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.name import dotted_name
from explainer.source.tree import walk

_CUTS = frozenset({"detach", "data"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each tuple, list or dictionary that is kept, or handed back, with some of its parts detached."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        for node in file.walk():
            value = node.value if isinstance(node, (ast.Assign, ast.Return)) else None
            if value is None or not _is_kept(node) or is_without_grad(node, file, context.program):
                continue
            parts = (
                value.elts
                if isinstance(value, (ast.Tuple, ast.List))
                else value.values
                if isinstance(value, ast.Dict)
                else []
            )
            left = [one for one in parts if isinstance(one, (ast.Name, ast.Attribute)) and not _is_cut(one)]
            is_cut_in_part = any(_is_cut(one) and not isinstance(one, ast.Constant) for one in parts)
            if left and is_cut_in_part and all(_is_cut(one) or one in left for one in parts):
                yield _proposal(left, file)


def _proposal(left: Sequence[ast.expr], file: SourceFile) -> Proposal:
    names = ", ".join(f"`{file.segment(one)}`" for one in left)
    return Proposal(
        edits=tuple(put_method(file, one, ".detach()") for one in left),
        culprit=culprit_of(file, left[0], f"keeps {names} with its graph, beside parts that are detached"),
        belief=2.2,
    )


def _is_kept(node: ast.AST) -> bool:
    """Whether a value outlives the step: bound to an attribute or an element, or to a name that its own parts have."""
    if isinstance(node, ast.Return):
        return isinstance(node.value, (ast.Tuple, ast.List)) and _is_of_one_stem(node.value.elts)
    if not isinstance(node, ast.Assign):
        return False
    if any(isinstance(one, (ast.Attribute, ast.Subscript)) for one in node.targets):
        return True
    bound = {one.id for target in node.targets for one in walk(target) if isinstance(one, ast.Name)}
    return bool(bound & {one.id for one in walk(node.value) if isinstance(one, ast.Name)})


def _is_of_one_stem(parts: list[ast.expr]) -> bool:
    """Whether the parts are what an LSTM calls its state: a hidden and a cell state, and nothing else."""
    stems = {
        (
            dotted_name(one.func.value if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) else one)
            or ""
        )
        for one in parts
    }
    return stems in ({"h", "c"}, {"hx", "cx"}, {"hidden", "cell"}, {"h_n", "c_n"}, {"hn", "cn"}, {"h_t", "c_t"})


def _is_cut(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Attribute):
        return node.attr == "data"
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in _CUTS or _is_cut(node.func.value)
