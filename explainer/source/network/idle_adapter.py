"""Configurations of adapters that a program makes and gives to nothing: no model, no trainer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.network.peft import CONFIGS
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import scope_of


@dataclass(frozen=True, slots=True)
class IdleAdapter:
    """`config = LoraConfig(...)`, a local name of which no more than attributes is read."""

    file: SourceFile
    statement: ast.Assign
    name: str
    scope: ast.AST


def find_idle_adapters(program: Program) -> Iterator[IdleAdapter]:
    """Each configuration of PEFT that has a name and is never handed on."""
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            value = node.value if isinstance(node, ast.Assign) else None
            if not isinstance(node, ast.Assign) or not isinstance(value, ast.Call) or len(node.targets) != 1:
                continue
            library, _, kind = (names.qualified(value.func) or "").partition(".")
            target = node.targets[0]
            if library != "peft" or kind.rpartition(".")[2] not in CONFIGS or not isinstance(target, ast.Name):
                continue
            scope = scope_of(node, file, program) or file.tree
            if scope is None or any(_is_handed_on(one, target.id, file) for one in walk(scope)):
                continue
            if scope is not file.tree or not _is_read_elsewhere(target.id, file, program):
                yield IdleAdapter(file, node, target.id, scope)


def _is_read_elsewhere(name: str, file: SourceFile, program: Program) -> bool:
    """Whether another file imports a name of a module, or reads it of one."""
    return any(
        (isinstance(node, ast.ImportFrom) and any(one.name in (name, "*") for one in node.names))
        or (isinstance(node, ast.Attribute) and node.attr == name)
        for other in program.parsed()
        if other is not file
        for node in other.walk()
    )


def _is_handed_on(node: ast.AST, name: str, file: SourceFile) -> bool:
    """Whether a node reads the name otherwise than to look at it: `config.r`, `print(config)`."""
    if not isinstance(node, ast.Name) or node.id != name or not isinstance(node.ctx, ast.Load):
        return False
    above = file.parents.get(node)
    is_shown = isinstance(above, ast.FormattedValue) or (
        isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id == "print"
    )
    return not isinstance(above, ast.Attribute) and not is_shown
