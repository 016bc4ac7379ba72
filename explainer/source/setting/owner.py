"""The calls that make the owner of some settings: a class of a library, one of the program's that inherits it, a method of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.value.resolve import resolver_of

_DEPTH = 4  # classes between one of the program's and the library's


def calls_of_owner(owners: Sequence[str], program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The calls of owners: `TrainingArguments`, with its class where it is a method: `AutoModel.from_pretrained`."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and is_owner(node.func, owners, file, program):
                yield file, node


def is_owner(called: ast.expr, owners: Sequence[str], file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether an expression names an owner, or a class that inherits one."""
    name = program.names(file).qualified(called) or ""
    found = resolver_of(program).find_class(called, file) if depth < _DEPTH else None
    if found is not None:  # the program's own, whatever it is called
        return any(is_owner(one, owners, found[0], program, depth + 1) for one in found[1].bases)
    return any(name == one or name.endswith(f".{one}") for one in owners)
