"""A weight that two parts of a model share is listed by the first of them, where a loop makes the groups of an optimizer.

`[p for p in part.parameters() if p.requires_grad]` gets one more condition: that none of the groups so far lists the parameter.
Where the parts have options of their own, whose learning rate the weight gets is the author's to say: the line alone is told.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import free_name, operand
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import scope_of

_TWICE = "appear in more than one parameter group"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each loop that adds groups of parameters to a list."""
    if _TWICE not in message_of(context):
        return
    for file in context.program.parsed():
        for loop in file.walk():
            groups = _groups(loop) if isinstance(loop, ast.For) else None
            listed = next((one for one in walk(loop) if _lists(one)), None) if groups is not None else None
            if groups is None or not isinstance(listed, (ast.ListComp, ast.GeneratorExp)):
                continue
            assert isinstance(listed.elt, ast.Name)
            scope = scope_of(loop, file)
            group, other = free_name("group", scope), free_name("other", scope)
            test = f'not any({listed.elt.id} is {other} for {group} in {groups} for {other} in {group}["params"])'
            if '["params"]' in file.segment(listed):
                continue
            part = listed.generators[0]
            last = part.ifs[-1] if part.ifs else None
            edit = (
                edit_of(file, last, f"{_side(last, file)} and {test}")
                if last is not None
                else edit_of(file, part.iter, f"{file.segment(part.iter)} if {test}")
            )
            yield Proposal(
                edits=() if _has_own_options(loop) else (edit,),
                culprit=culprit_of(file, listed, "lists what an earlier part has listed: the parts share a weight"),
                belief=2.5,
                applicability="unsafe",
                because="the part that comes first keeps a shared weight; all parts have the same options",
            )


def _groups(loop: ast.For) -> str | None:
    """The list to which a loop adds dictionaries with parameters."""
    return next((name for name, _ in _added(loop)), None)


def _added(loop: ast.AST) -> Iterator[tuple[str | None, ast.Dict]]:
    for node in walk(loop):
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and isinstance(func, ast.Attribute) and func.attr == "append" and node.args:
            added = node.args[0]
            if isinstance(added, ast.Dict) and "params" in [getattr(one, "value", None) for one in added.keys]:
                yield dotted_name(func.value), added


def _has_own_options(loop: ast.AST) -> bool:
    """Whether the options of a group depend on the part, or are not known."""
    of_part = {one.id for one in walk(loop) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return any(
        key is None
        or (getattr(key, "value", None) != "params" and any(getattr(one, "id", "") in of_part for one in walk(value)))
        for _, added in _added(loop)
        for key, value in zip(added.keys, added.values, strict=True)
    )


def _lists(node: ast.AST) -> bool:
    """`[p for p in part.parameters() ...]`."""
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp)) or len(node.generators) != 1:
        return False
    over = node.generators[0].iter
    is_whole = isinstance(over, ast.Call) and getattr(over.func, "attr", "") == "parameters"
    return is_whole and isinstance(node.elt, ast.Name) and ast.unparse(node.generators[0].target) == node.elt.id


def _side(node: ast.expr, file: SourceFile) -> str:
    return file.segment(node) if isinstance(node, (ast.Compare, ast.Attribute)) else operand(file, node)
