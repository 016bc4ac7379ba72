"""One Python file of the user's program: its bytes, its text, its syntax tree, and where each node stands in the text."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from explainer.source.text import TextFile, Unreadable, read_bytes
from explainer.source.tree import children, walk

__all__ = ["SourceFile", "Unreadable", "parse_source", "parse_text", "read_source"]

MAX_SOURCE = 4 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class SourceFile(TextFile):
    """A Python file as it lay on disk; `tree` is None where the file does not parse, and `fault` then says why."""

    tree: ast.Module | None
    fault: str | None = None

    def offset(self, line: int, column: int) -> int:
        """The offset of what `ast` calls line and column, which counts UTF-8 bytes."""
        start = self.line_start(line)
        text = self.line(line)
        if text.isascii():
            return start + column
        return start + len(text.encode("utf-8")[:column].decode("utf-8", "replace"))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends in the text."""
        start = self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return start, self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def segment(self, node: ast.AST) -> str:
        """The source of a node, as it is written."""
        start, end = self.span(node)
        return self.text[start:end]

    def walk(self) -> Iterator[ast.AST]:
        """Every node of the tree; none where the file does not parse."""
        return iter(self.nodes)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree, outer ones before inner ones."""
        return tuple(walk(self.tree)) if self.tree is not None else ()

    @cached_property
    def statements(self) -> tuple[ast.stmt, ...]:
        """Every statement of the tree, in the order of `nodes`."""
        return tuple(one for one in self.nodes if isinstance(one, ast.stmt))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The parent of each node."""
        return {child: node for node in self.walk() for child in children(node)}

    @cached_property
    def attributes(self) -> dict[str, list[ast.Attribute]]:
        """Every attribute that the file reads or binds, by its last name, in the order of `nodes`."""
        found: dict[str, list[ast.Attribute]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Attribute):
                found.setdefault(node.attr, []).append(node)
        return found

    @cached_property
    def plain_names(self) -> dict[str, list[ast.Name]]:
        """Every plain name that the file reads or binds, in the order of `nodes`."""
        found: dict[str, list[ast.Name]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Name):
                found.setdefault(node.id, []).append(node)
        return found

    def enclosing(self, node: ast.AST, *kinds: type[ast.AST]) -> ast.AST | None:
        """The nearest node around `node` that is of one of `kinds`."""
        above = self.parents.get(node)
        while above is not None and not isinstance(above, kinds):
            above = self.parents.get(above)
        return above

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around `node`, nearest first."""
        above = self.parents.get(node)
        while above is not None:
            yield above
            above = self.parents.get(above)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that holds an expression; the node itself where it is one."""
        if isinstance(node, ast.stmt):
            return node
        found = self.enclosing(node, ast.stmt)
        assert isinstance(found, ast.stmt)
        return found


def read_source(path: str) -> SourceFile:
    """Read and parse a Python file.

    Raises:
        Unreadable: no regular file, too large, not readable, or in an encoding that it does not hold to.
    """
    return parse_source(path, read_bytes(path, MAX_SOURCE))


def parse_source(path: str, data: bytes) -> SourceFile:
    """The file at `path` whose content is `data`.

    Raises:
        Unreadable: the bytes do not decode, or would not come back the same when encoded.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        is_marked = data.startswith(_BOM)
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding
        body = data.removeprefix(_BOM) if is_marked else data
        text = body.decode(encoding)
        if text.encode(encoding) != body:
            raise Unreadable(f"{path}: its {encoding} text does not come back the same")
    except (SyntaxError, UnicodeError, LookupError) as error:
        raise Unreadable(f"{path}: does not decode: {error}") from error
    tree, fault = parse_text(text)
    return SourceFile(path, data, text, encoding, tree, fault, is_marked=is_marked)


def parse_text(text: str) -> tuple[ast.Module | None, str | None]:
    """The tree of a source text, or why there is none."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the user's invalid escapes are not ours to report
            return ast.parse(text), None
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        return None, f"does not parse{f' (line {line})' if line else ''}: {getattr(error, 'msg', error)}"
    except (RecursionError, MemoryError):
        return None, "does not parse: it is nested too deeply"
