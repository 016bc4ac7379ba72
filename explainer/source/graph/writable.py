"""Whether autograd lets a tensor be written in place: it is no leaf, no view of several, and no backward needs its old value."""

from __future__ import annotations

import ast

from explainer.source.file import SourceFile
from explainer.source.graph.operand import is_operand_before
from explainer.source.graph.operation import Operation, saves_output
from explainer.source.program import Program
from explainer.source.value.definition import operations_before

_SEVERAL = frozenset({"Chunk", "Split", "Unbind", "Expand"})


def is_writable(name: str, at: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a tensor is known to be no leaf, and its old value to be needed by no backward: torch then allows a write."""
    made = operations_before(name, at, file, program)
    known = [one for one in made if isinstance(one, Operation)]
    is_free = not any(saves_output(one) or one.name in _SEVERAL for one in known)
    is_read = is_operand_before(name, at, file, program)
    return bool(made) and len(known) == len(made) and is_free and not is_read
