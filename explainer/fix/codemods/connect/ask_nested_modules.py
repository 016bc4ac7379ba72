"""`for m in self.modules():` where a list of what to differentiate by is gathered from `self.children()`.

Children are one level deep: a layer that stands in a `ModuleList` is not asked what it needs, and nothing gets the flag for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.tree import walk

_ASKS = ("getattr", "hasattr")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each walk over children that asks them for an attribute which the function that differentiates reads too."""
    wanted = {
        node.attr
        for file, statement in raised_at(context)
        for node in walk(context.program.names(file).function_of(statement) or statement)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    }
    for file in context.program.parsed() if wanted else ():
        for node in file.walk():
            if not isinstance(node, (ast.For, ast.comprehension)) or not isinstance(node.target, ast.Name):
                continue
            call, body = node.iter, node if isinstance(node, ast.For) else file.statement(node.iter)
            if not isinstance(call, ast.Call) or call.args or getattr(call.func, "attr", "") != "children":
                continue
            asked = _asked_of(node.target.id, body) & wanted if body is not None else set()
            if asked and isinstance(call.func, ast.Attribute):
                why = f"asks the children for `{min(asked)}`, and nothing that they hold"
                yield Proposal(
                    edits=(edit_of(file, call, f"{ast.unparse(call.func.value)}.modules()"),),
                    culprit=culprit_of(file, call, why),
                    belief=2.5,
                    is_origin=True,
                )


def _asked_of(name: str, body: ast.AST) -> set[str]:
    """The attributes that some code reads of a name: `m.cutoff`, `getattr(m, "cutoff", None)`."""
    found = set()
    for node in walk(body):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            found.add(node.attr)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in _ASKS and len(node.args) > 1:
            module, attribute = node.args[:2]
            if isinstance(module, ast.Name) and module.id == name and isinstance(attribute, ast.Constant):
                found.add(str(attribute.value))
    return found
