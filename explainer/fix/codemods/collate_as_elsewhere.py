"""A loader gets the collate function that the program's other loader has, or the one that is written and that nobody takes.

`DataLoader(train, batch_size=8)` beside `DataLoader(val, batch_size=8, collate_fn=pad)`: rows of different lengths are not stacked.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.rewrite import add_argument
from explainer.source.binding import parameters_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program

_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
_STACKED = "stack expects each tensor to be equal size"
_COLLATES = re.compile(r"collate|pad_|_pad|pack_", re.IGNORECASE)
_FITS = "what the other loader makes of the same kind of rows"
_UNUSED = "right if it was written for these rows: nothing else takes it"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loaders without a collate function, where there is one that fits."""
    if not any(_STACKED in one.message for one in context.incident.exceptions):
        return
    program = context.program
    found = [
        (file, node)
        for file in program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Call) and program.names(file).is_call(node, *_LOADERS)
    ]
    given = {dotted_name(one.value) for _, node in found for one in node.keywords if one.arg == "collate_fn"}
    bare = [(file, node) for file, node in found if _is_bare(node)]
    for file, node in bare:
        written = given or set(_unused(file, program))
        name = next(iter(written)) if len(written) == 1 else None
        if name is None or not _is_known(name, file, program):
            continue
        edits = tuple(add_argument(file, one, f"collate_fn={name}") for where, one in bare if where is file)
        yield Proposal(
            edits=edits,
            culprit=culprit_of(file, node, f"stacks rows of different sizes; `{name}` pads them"),
            belief=2.0 if given else 1.5,
            applicability=None if given else "unsafe",
            because=_FITS if given else _UNUSED,
        )
        return


def _is_bare(call: ast.Call) -> bool:
    """Whether a loader takes the default: no keyword of its own, none that is unpacked, and not by position."""
    return not any(one.arg in ("collate_fn", None) for one in call.keywords) and len(call.args) < 7


def _unused(file: SourceFile, program: Program) -> Iterator[str]:
    """The functions of one batch in a file, named as what collates, that nothing reads."""
    for node in file.tree.body if file.tree is not None else ():
        if isinstance(node, ast.FunctionDef) and _COLLATES.search(node.name) and len(parameters_of(node)) == 1:
            reads = [
                one
                for each in program.parsed()
                for one in each.walk()
                if isinstance(one, (ast.Name, ast.Attribute)) and (dotted_name(one) or "").endswith(node.name)
            ]
            if not reads:
                yield node.name


def _is_known(name: str, file: SourceFile, program: Program) -> bool:
    """Whether a file has a function of its own, or an import, of that name."""
    own = [one.name for one in file.tree.body if isinstance(one, ast.FunctionDef)] if file.tree is not None else []
    return name in own or name in program.names(file).imports
