"""Points at where weights that a trace saw be not finite before any step come from: a file. No edit: only the file can be restored.

A cell without a number in a table beside the program comes first, then the line that makes weights of what was read,
`nn.Embedding.from_pretrained(table)`, `nn.Parameter(torch.from_numpy(table))`, and the line that reads it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.data_cell import READERS, cells
from explainer.source.file import SourceFile
from explainer.source.network.anew import PARAMETER
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.upstream import calls_behind

_OF_VALUES = ("torch.nn.Embedding.from_pretrained", "torch.nn.EmbeddingBag.from_pretrained")
_OPENS = ("open", "read_text", "read_bytes")


def propose(context: Context) -> Iterator[Proposal]:
    """The lines, where a trace saw such weights; none where the program makes none of what it reads."""
    if not any(one.name == "traced_bad_input" and one.value == "untouched" for one in context.incident.facts):
        return
    program = context.program
    found = [(file, node, reads) for file, node in _makers(program) if (reads := _reads(node, file, program))]
    broken = list(cells(context)) if found else []
    yield from (replace(one, is_origin=True) for one in broken)
    for file, node, reads in found:
        why = "makes weights of what a file holds"
        is_origin = len(found) == 1 and not broken
        yield Proposal(edits=(), culprit=culprit_of(file, node, why), belief=1.5, is_origin=is_origin)
        for where, read in reads:
            why = "reads what weights are made of"
            yield Proposal(edits=(), culprit=culprit_of(where, read, why), belief=1.4)


def _makers(program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and program.names(file).qualified(node.func) in (*_OF_VALUES, *PARAMETER):
                yield file, node


def _reads(node: ast.Call, file: SourceFile, program: Program) -> list[tuple[SourceFile, ast.Call]]:
    """The calls that read a file on the way to a call's arguments."""
    behind = calls_behind([Value(one, file) for one in node.args], program)
    return [(where, one) for where, one in behind if _is_read(one, where, program)]


def _is_read(node: ast.Call, file: SourceFile, program: Program) -> bool:
    called = program.names(file).qualified(node.func) or str(getattr(node.func, "attr", ""))
    return called.startswith(READERS) or called.rpartition(".")[2] in _OPENS
