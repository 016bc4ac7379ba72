"""Imports that an edit brings in, or leaves without a reader."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name


def import_after(file: SourceFile, line: str) -> Iterator[Edit]:
    """The edit that puts an import behind those of the file; none where it has it."""
    imports = [one for one in (file.tree.body if file.tree else ()) if isinstance(one, (ast.Import, ast.ImportFrom))]
    if not imports or any(file.segment(one) == line for one in imports):
        return
    at = file.line_start((imports[-1].end_lineno or imports[-1].lineno) + 1)
    yield Edit(file=file.path, start=at, end=at, new=f"{line}{file.newline}")


def drop_name(file: SourceFile, last: ast.expr) -> Iterator[Edit]:
    """The edit that takes a name out of its import, where `last` is all that reads it."""
    name = dotted_name(last)
    uses = [node for node in file.walk() if isinstance(node, ast.Name) and node.id == name]
    if name is None or len(uses) != 1:
        return
    for one in file.walk():
        if not isinstance(one, ast.ImportFrom):
            continue
        at = next((place for place, alias in enumerate(one.names) if (alias.asname or alias.name) == name), None)
        if at is None:
            continue
        if len(one.names) == 1:
            yield Edit(
                file=file.path,
                start=file.line_start(one.lineno),
                end=file.line_start((one.end_lineno or one.lineno) + 1),
                new="",
            )
            return
        start = file.span(one.names[at - 1])[1] if at else file.span(one.names[0])[0]
        end = file.span(one.names[at])[1] if at else file.span(one.names[1])[0]
        yield Edit(file=file.path, start=start, end=end, new="")


def imported(file: SourceFile, module: str, name: str) -> tuple[str, tuple[Edit, ...]]:
    """How a file is to write a name of a module, and the edit that imports it where the file does not have it yet."""
    statements = [one for one in file.walk() if isinstance(one, (ast.Import, ast.ImportFrom))]
    last: ast.ImportFrom | None = None
    for one in statements:
        if isinstance(one, ast.ImportFrom) and one.module == module and not one.level:
            for alias in one.names:
                if alias.name in (name, "*"):
                    return alias.asname or name, ()
            last = last or (one if file.parents.get(one) is file.tree else None)
    for one in statements:
        for alias in one.names if isinstance(one, ast.Import) else ():
            if alias.name == module:
                return f"{alias.asname or module}.{name}", ()
    if last is not None:
        return name, (_beside(file, last, name),)
    return name, tuple(import_after(file, f"from {module} import {name}"))


def _beside(file: SourceFile, statement: ast.ImportFrom, name: str) -> Edit:
    """The edit that puts a name among those of an import, in the order of the alphabet where it has one."""
    spans = [file.span(one) for one in statement.names]
    gap = file.text[spans[0][1] : spans[1][0]] if len(spans) > 1 else ", "
    after = next((at for at, one in enumerate(statement.names) if one.name > name), None)
    if after is None:
        return Edit(file=file.path, start=spans[-1][1], end=spans[-1][1], new=f"{gap}{name}")
    return Edit(file=file.path, start=spans[after][0], end=spans[after][0], new=f"{name}{gap}")
