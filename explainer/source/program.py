"""The user's program: the files that the frames name or that these import, under one root, and what their names mean."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from explainer.source.file import SourceFile, Unreadable, read_source
from explainer.source.name import Function, Names
from explainer.source.notebook import read_notebook
from explainer.source.place import is_inside, place_of
from explainer.source.text import TextFile

if TYPE_CHECKING:
    from explainer.source.setting.setting import Document

T = TypeVar("T")
MAX_FILES = 200
MAX_BYTES = 384 << 10


class Program:
    """Files of one project. `order` lists them by how near they are to the failure: frames first, then imports.

    `read` are configuration files that the command names.
    """

    def __init__(
        self, root: str, files: Iterable[SourceFile], faults: tuple[str, ...] = (), read: tuple[str, ...] = ()
    ) -> None:
        self.root = root
        self._read = read
        self.order = tuple(files)
        self.faults = faults
        self._names: dict[str, Names] = {}
        self._known: dict[Callable[[Program], Iterator[Any]], tuple[Any, ...]] = {}

    def once(self, read: Callable[[Program], Iterator[T]]) -> tuple[T, ...]:
        """What a reader finds in this program, read the first time only: several codemods ask the same."""
        if read not in self._known:
            self._known[read] = tuple(read(self))
        return self._known[read]

    @cached_property
    def files(self) -> dict[str, SourceFile]:
        """The files by absolute path."""
        return {file.path: file for file in self.order}

    @cached_property
    def texts(self) -> tuple[TextFile, ...]:
        """The configuration files and scripts that belong to the program; read when first asked for."""
        from explainer.source.setting.file import find_texts

        return find_texts(self.root, self.order, self._read)

    def documents(self, word: str = "") -> tuple[Document, ...]:
        """The configuration files and scripts whose text holds a word, with their settings."""
        from explainer.source.setting.setting import read_document

        return tuple(read_document(text) for text in self.texts if word in text.text)

    def editable(self, paths: Iterable[str]) -> Mapping[str, TextFile]:
        """Files by absolute path, in which those of `paths` are; configuration files only where they are wanted."""
        if all(path in self.files for path in paths):
            return self.files
        return {**{text.path: text for text in self.texts}, **self.files}

    def names(self, file: SourceFile) -> Names:
        """What names mean in a file of this program."""
        if file.path not in self._names:
            self._names[file.path] = Names(file, module_name(file.path, self.root))
        return self._names[file.path]

    def parsed(self) -> Iterator[SourceFile]:
        """The files that parse, nearest to the failure first."""
        return (file for file in self.order if file.tree is not None)

    def file_of(self, node: ast.AST) -> SourceFile | None:
        """The file that a node stands in; None for a node that no file of the program holds."""
        return next((file for file in self.parsed() if node in file.parents), None)

    def functions(self) -> Iterator[tuple[SourceFile, Function]]:
        """Every function of the program with its file."""
        for file in self.parsed():
            for function in self.names(file).functions:
                yield file, function

    def find_class(self, name: str) -> tuple[SourceFile, ast.ClassDef] | None:
        """The class of that name (the last part of a dotted one) where the program has exactly one."""
        found = self._classes.get(name.rpartition(".")[2], ())
        return found[0] if len(found) == 1 else None

    def find_function(self, name: str) -> tuple[SourceFile, Function] | None:
        """The function of that name (the last part of a dotted one) where the program has exactly one."""
        found = self.functions_named(name.rpartition(".")[2])
        return found[0] if len(found) == 1 else None

    def functions_named(self, name: str) -> Sequence[tuple[SourceFile, Function]]:
        """The functions and methods of that name, each with its file."""
        return self._functions.get(name, ())

    @cached_property
    def _classes(self) -> dict[str, list[tuple[SourceFile, ast.ClassDef]]]:
        found: dict[str, list[tuple[SourceFile, ast.ClassDef]]] = {}
        for file in self.parsed():
            for name, one in self.names(file).classes.items():
                found.setdefault(name, []).append((file, one))
        return found

    @cached_property
    def _functions(self) -> dict[str, list[tuple[SourceFile, Function]]]:
        found: dict[str, list[tuple[SourceFile, Function]]] = {}
        for file, function in self.functions():
            found.setdefault(function.name, []).append((file, function))
        return found

    def at(self, file: str, line: int, mark: tuple[int, int] | None = None) -> ast.stmt | None:
        """The innermost statement that covers a line of a file.

        Of several on one line, `a = f(); b = g()`, that which a traceback marked (columns of the line without its
        indentation), else the last.
        """
        source = self.files.get(file)
        best: ast.stmt | None = None
        marked: ast.stmt | None = None
        place = _column(source, line, mark) if source is not None and mark is not None else None
        for node in source.statements if source else ():
            covers = node.lineno <= line <= (node.end_lineno or node.lineno)
            if covers and (best is None or node.lineno >= best.lineno):
                best = node
                if place is not None and (node.lineno, node.col_offset) <= (line, place):
                    marked = node
        return marked or best


def _column(source: SourceFile, line: int, mark: tuple[int, int]) -> int:
    """Where a mark begins, in the bytes by which `ast` counts."""
    text = source.line(line)
    indentation = len(text) - len(text.lstrip())
    return len(text[: indentation + mark[0]].encode())


def read_program(root: str, named: Iterable[str]) -> Program:
    """The files that `named` lists (as frames write them) and the project's files that they import, by name too, read and parsed.

    Only `.py` files and notebooks under `root`, none of an installed package; at most 200 files and 16 MiB. Configuration files
    that `named` lists are among the program's texts.
    """
    from explainer.source.dynamic_import import modules_by_name
    from explainer.source.setting.setting import kind_of

    root = os.path.realpath(root)
    named = list(named)
    queue = [path for name in named if (path := place_of(name, root))]
    asked = [os.path.realpath(os.path.join(root, name)) for name in named if kind_of(name) is not None]
    read = tuple(path for path in asked if is_inside(path, root))
    seen: dict[str, SourceFile] = {}
    looked_for: set[str] = set()
    faults: list[str] = []
    size = 0
    is_by_name = False
    while len(seen) < MAX_FILES and size < MAX_BYTES:
        if not queue and not is_by_name:
            is_by_name = True
            queue = [os.path.realpath(one) for one in modules_by_name(list(seen.values()), root, read)]
        if not queue:
            break
        path = queue.pop(0)
        if path in seen:
            continue
        try:
            file = read_notebook(path) if path.endswith(".ipynb") else read_source(path)
        except Unreadable as error:
            faults.append(str(error))
            continue
        seen[path] = file
        size += len(file.text)
        queue.extend(imported for imported in _imported(file, root, looked_for) if imported not in seen)
    return Program(root, seen.values(), tuple(faults), read)


def module_name(path: str, root: str) -> str:
    """The dotted name of a file under `root`."""
    relative = os.path.relpath(path, root).removesuffix(".py").replace(os.sep, ".")
    return relative.removesuffix(".__init__")


def _imported(file: SourceFile, root: str, looked_for: set[str]) -> Iterator[str]:
    """The project's files that a file imports, looked for beside it, at the root and in `src`, each place once."""
    here = os.path.dirname(file.path)
    for node in file.walk():
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
            places = [here, root, os.path.join(root, "src")]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            wanted = [base, *(f"{base}.{alias.name}".strip(".") for alias in node.names)]
            above = os.path.normpath(os.path.join(here, *[os.pardir] * (node.level - 1))) if node.level else here
            places = [above] if node.level else [here, root, os.path.join(root, "src")]
        else:
            continue
        for module in filter(None, wanted):
            for place in places:
                stem = os.path.join(place, *module.split("."))
                if stem in looked_for:
                    continue
                looked_for.add(stem)
                for path in (f"{stem}.py", os.path.join(stem, "__init__.py")):
                    if os.path.isfile(path) and is_inside(real := os.path.realpath(path), root):
                        yield real
