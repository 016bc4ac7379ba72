"""Imports that an edit brings in, or leaves without a reader."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.text import TextFile
from explainer.source.tree import start_of

_WRITES_TORCH = re.compile(r"(?<![\w.\"'])torch\.")
_IMPORTS_TORCH = re.compile(r"(?m)^\s*import torch\s*$")


def import_after(file: SourceFile, line: str) -> Iterator[Edit]:
    """The edit that puts an import behind those of the file, or behind its docstring; none where it has it."""
    body = file.tree.body if file.tree else []
    imports = [one for one in body if isinstance(one, (ast.Import, ast.ImportFrom))]
    if not body or any(file.segment(one) == line for one in imports):
        return
    if not imports:
        has_docstring = file.tree is not None and ast.get_docstring(file.tree, clean=False) is not None
        at = file.line_start((body[0].end_lineno or 1) + 1) if has_docstring else file.line_start(_first_line(body[0]))
        new = f"{file.newline}{line}{file.newline}" if has_docstring else f"{line}{file.newline * 2}"
        yield Edit(file=file.path, start=at, end=at, new=new)
        return
    at = file.line_start((imports[-1].end_lineno or imports[-1].lineno) + 1)
    yield Edit(file=file.path, start=at, end=at, new=f"{line}{file.newline}")


def _first_line(statement: ast.stmt) -> int:
    return min(start_of(one)[0] for one in (statement, *getattr(statement, "decorator_list", ())))


def torch_imports(edits: Iterable[Edit], files: Mapping[str, TextFile]) -> Iterator[Edit]:
    """The edits that import torch where others write `torch.` into a file that has no such name: it imports parts of it alone."""
    for path in dict.fromkeys(edit.file for edit in edits):
        file, new = files[path], [edit.new for edit in edits if edit.file == path]
        if not isinstance(file, SourceFile) or file.tree is None or any(_IMPORTS_TORCH.search(one) for one in new):
            continue
        if not any(_WRITES_TORCH.search(one) for one in new):
            continue
        imports = [one for one in file.walk() if isinstance(one, (ast.Import, ast.ImportFrom))]
        bound = {alias.asname or alias.name.partition(".")[0] for one in imports for alias in one.names}
        if "torch" in bound:
            continue
        of_torch = [one for one in file.tree.body if one in imports and _is_of_torch(one)]
        if of_torch:
            at = file.line_start(of_torch[0].lineno)
            yield Edit(file=path, start=at, end=at, new=f"import torch{file.newline}")
        else:
            yield from import_after(file, "import torch")


def _is_of_torch(statement: ast.stmt) -> bool:
    modules = [statement.module or ""] if isinstance(statement, ast.ImportFrom) else []
    modules += [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else []
    return any(one.partition(".")[0] == "torch" for one in modules)


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
