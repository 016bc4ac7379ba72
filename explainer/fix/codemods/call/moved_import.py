"""Imports a name from where it is in the installed release: `from torch.optim import AdamW` for transformers' own.

Where it went is read from the table of the libraries' interfaces. The program goes on to use its own name for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.model.interface import Change
from explainer.model.patch import Edit
from explainer.source.file import SourceFile


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each import of the name that the message misses."""
    name, module = str(context.fields.get("name", "")), str(context.fields.get("module", ""))
    for change in context.changes(module, name) if name and module else ():
        if change.old != name or change.kind != "import" or change.new is None or "." not in change.new:
            continue
        for file in context.program.parsed():
            for node in file.walk():
                if isinstance(node, ast.ImportFrom) and node.module == module and not node.level:
                    yield from _moved(file, node, name, change)
        return


def _moved(file: SourceFile, node: ast.ImportFrom, name: str, change: Change) -> Iterator[Proposal]:
    for alias in node.names:
        if alias.name == name:
            place, _, new = str(change.new).rpartition(".")
            own = alias.asname or name
            line = f"from {place} import {new}{f' as {own}' if own != new else ''}"
            yield Proposal(
                edits=_edits(file, node, alias, line),
                culprit=culprit_of(file, alias, f"imports `{name}`, which is `{change.new}` now"),
                belief=2.0,
                title=f"Write `{line}`",
                because=change.note
                or f"it is what {change.library} {change.removed or ''} and later have".replace("  ", " "),
            )


def _edits(file: SourceFile, node: ast.ImportFrom, alias: ast.alias, line: str) -> tuple[Edit, ...]:
    """The name's own line, and the old one without it."""
    if len(node.names) == 1:
        return (edit_of(file, node, line),)
    at = node.names.index(alias)
    start, end = file.span(alias)
    if at + 1 < len(node.names):
        end = file.span(node.names[at + 1])[0]
    else:
        start = file.span(node.names[at - 1])[1]
    return insert_before(file, node, line), Edit(file=file.path, start=start, end=end, new="")
