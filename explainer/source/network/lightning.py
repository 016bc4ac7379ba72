"""The Lightning modules of a program, and the classes that they inherit from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.value.resolve import resolver_of

PACKAGES = ("lightning.", "pytorch_lightning.")
Owner = tuple[SourceFile, ast.ClassDef]


def find_lightning_modules(program: Program) -> Iterator[Owner]:
    """The Lightning modules from which no other module of the program derives."""
    found = [(file, owner) for file in program.parsed() for owner in file.walk() if isinstance(owner, ast.ClassDef)]
    modules = [one for one in found if _is_lightning(one, program)]
    bases = {id(base) for one in modules for _, base in list(chain_of(one, program))[1:]}
    yield from (one for one in modules if id(one[1]) not in bases)


def _is_lightning(owner: Owner, program: Program) -> bool:
    return any(
        name.startswith(PACKAGES) and name.endswith(".LightningModule")
        for file, one in chain_of(owner, program)
        for base in one.bases
        if (name := program.names(file).qualified(base) or "")
    )


def chain_of(owner: Owner, program: Program) -> Iterator[Owner]:
    """A class and the classes of the program that it derives from."""
    resolver, queue, seen = resolver_of(program), [owner], set()
    while queue:
        file, one = queue.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield file, one
        for base in one.bases:
            found = resolver.find_class(base, file)
            if found is not None:
                queue.append(found)
