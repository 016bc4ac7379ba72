"""Attributes that are assigned from outside of the class that has them: `data.teacher = teacher`."""

from __future__ import annotations

import ast
from functools import lru_cache

from explainer.source.file import SourceFile
from explainer.source.program import Program

_OWN = frozenset({"self", "cls"})
_MOST = 16  # names of attributes are few words: what hangs on everything says nothing

Outside = tuple[SourceFile, ast.Attribute, ast.Assign]


@lru_cache(maxsize=2)
def assignments_from_outside(program: Program) -> dict[str, list[Outside]]:
    """The assignments to attributes of what is not `self`, by the attribute's name; none of a name that has very many."""
    found: dict[str, list[Outside]] = {}
    for file in program.parsed():
        for node in file.walk():
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
            if isinstance(target, ast.Attribute) and getattr(target.value, "id", "") not in _OWN:
                found.setdefault(target.attr, []).append((file, target, node))  # type: ignore[arg-type]
    return {name: places for name, places in found.items() if len(places) <= _MOST}
