"""What belongs to the model inside a parallel wrapper is read through it: `model.encoder` becomes `model.module.encoder`.

A method of the inner model that is called runs past the wrapper's forward: of DataParallel that means one device, of
DistributedDataParallel gradients that no other rank sees. There the edit is unsafe.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk

_MESSAGE = re.compile(r"'(\w*DataParallel)' object has no attribute '(\w+)'")
# Of the inner model, and yet not run: names, sizes and weights.
_HARMLESS = re.compile(r"config\w*|\w*parameters|\w*state_dict|save\w*|num_\w+|get_\w+_embeddings|print_\w+")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for all reads of the attribute from the wrapper that the failing line reads it from."""
    found = _MESSAGE.search(message_of(context))
    if found is None:
        return
    wrapper, name = found.groups()
    for file, statement in raised_at(context):
        bases = {_base(one, name) for one in walk(statement)} - {None, "self"}
        if len(bases) != 1:
            continue
        (base,) = bases
        reads = [one for one in file.walk() if _base(one, name) == base]
        runs = wrapper != "DataParallel" and any(_is_run(one, name, file) for one in reads)
        yield Proposal(
            edits=tuple(_through(one, file) for one in reads if isinstance(one, ast.Attribute)),
            culprit=culprit_of(file, next(one for one in walk(statement) if _base(one, name) == base), _why(name)),
            belief=2.5,
            applicability="unsafe" if runs else "safe",
            because="a call of the inner model goes past the wrapper, which then reduces no gradients"
            if runs
            else None,
            title=f"Read it through the wrapper: `{base}.module.{name}`",
        )


def _why(name: str) -> str:
    return f"asks the wrapper for `{name}`, which the model inside it has"


def _base(node: ast.AST, name: str) -> str | None:
    """What `name` is read from: `model` of `model.name`."""
    is_read = isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)
    return dotted_name(node.value) if is_read and isinstance(node, ast.Attribute) else None


def _is_run(node: ast.AST, name: str, file: SourceFile) -> bool:
    above = file.parents.get(node)
    return isinstance(above, ast.Call) and above.func is node and _HARMLESS.fullmatch(name) is None


def _through(node: ast.Attribute, file: SourceFile) -> Edit:
    at = file.span(node.value)[1]
    return Edit(file=file.path, start=at, end=at, new=".module")
