"""A line that was copied and not adapted: a layer runs twice, the one beside it that is meant for the second never."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from explainer.source.file import SourceFile
from explainer.source.tree import walk


def copied_use(owner: ast.ClassDef, unused: str, parts: Iterable[str], file: SourceFile) -> ast.Attribute | None:
    """`self.text_proj` in `self.text_proj(self.image_tower(photos))`, where `image_proj` is used nowhere.

    The two names share a word, and of the other's two calls one is given what has the unused one's own word. None where that is
    not clear.
    """
    found: list[ast.Attribute] = []
    for sibling in parts:
        own, others = _words(unused) - _words(sibling), _words(sibling) - _words(unused)
        if sibling == unused or not own or not others or not _words(unused) & _words(sibling):
            continue
        uses = [one for one in walk(owner) if _runs(one, sibling, file)]
        beside = [one for one in uses if (said := _said(one, file)) & own and not said & others]
        if len(uses) > 1 and len(beside) == 1:
            found += [one for one in beside if isinstance(one, ast.Attribute)]
    return found[0] if len(found) == 1 else None


def _runs(node: ast.AST, part: str, file: SourceFile) -> bool:
    above = file.parents.get(node)
    is_part = isinstance(node, ast.Attribute) and node.attr == part and isinstance(node.value, ast.Name)
    return is_part and isinstance(above, ast.Call) and above.func is node


def _said(use: ast.AST, file: SourceFile) -> set[str]:
    """The words of what a layer is given, and of the names that its result gets, without its own."""
    call, statement = file.parents[use], file.statement(use)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    given = [one for part in getattr(call, "args", []) for one in walk(part)]
    names = [one for one in (*given, *targets) if isinstance(one, (ast.Name, ast.Attribute))]
    return {word for one in names for word in _words(one.attr if isinstance(one, ast.Attribute) else one.id)}


def _words(name: str) -> set[str]:
    return {word.lower().removesuffix("s") for word in re.split(r"_|(?<=[a-z])(?=[A-Z])", name) if word}
