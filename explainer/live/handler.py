"""Which handler of a program takes an exception that is on its way, read in the source while the frames are there."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType

MAX_DEPTH = 80
ANY = "BaseException"
_ALL = frozenset({ANY, "Exception"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_BLOCKS = (ast.Try, ast.With, ast.AsyncWith)
Block = ast.Try | ast.With | ast.AsyncWith


@dataclass(frozen=True, slots=True)
class Handler:
    """The classes that a handler names, by their own names, and the words that its body says."""

    names: frozenset[str]
    words: str = ""

    @property
    def is_for_all(self) -> bool:
        """Whether it takes whatever comes."""
        return bool(self.names & _ALL)


def handler_of(frame: FrameType | None, kind: str, is_own: Callable[[CodeType], bool]) -> Handler | None:
    """The program's handler of an exception of this kind that comes out of a frame; None where a library, or nothing, takes it.

    One that does no more than raise hands it on as something else: who takes that is not known.
    """
    for _ in range(MAX_DEPTH):
        if frame is None:
            return None
        found = next(_handlers(frame, kind), None)
        if found is not None:
            handler, goes_on = found
            return handler if is_own(frame.f_code) and not goes_on else None
        frame = frame.f_back
    return None


def _handlers(frame: FrameType, kind: str) -> Iterator[tuple[Handler, bool]]:
    """What takes an exception of a kind at a frame's line, innermost first, and whether it raises."""
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return
    for block in _around(tree, frame.f_lineno):
        if isinstance(block, ast.Try):
            for one in block.handlers:
                if _takes(names := _names(one.type), kind):
                    yield Handler(names, _words(one.body)), any(isinstance(each, ast.Raise) for each in one.body)
                    break
        elif (suppressed := _suppressed(block)) and _takes(suppressed, kind):
            yield Handler(suppressed), False


def _takes(names: frozenset[str], kind: str) -> bool:
    return bool(names & (_ALL | {kind}))


def _around(tree: ast.AST, line: int) -> list[Block]:
    """The blocks of the line's own function that guard it, innermost first."""
    found: list[Block] = []
    inside: list[ast.AST] = [tree]
    while inside:
        node = inside.pop()
        if isinstance(node, _SCOPES):
            found.clear()  # what stands around a definition does not guard its calls
        elif isinstance(node, _BLOCKS) and any(_reaches(one, line) for one in node.body):
            found.append(node)
        inside = [one for one in ast.iter_child_nodes(node) if _reaches(one, line)][:1]
    return found[::-1]


def _reaches(node: ast.AST, line: int) -> bool:
    return isinstance(node, (ast.stmt, ast.ExceptHandler)) and node.lineno <= line <= (node.end_lineno or node.lineno)


def _suppressed(block: ast.With | ast.AsyncWith) -> frozenset[str]:
    """The classes that `contextlib.suppress` is given."""
    calls = [one.context_expr for one in block.items if isinstance(one.context_expr, ast.Call)]
    return frozenset().union(*(map(_name, one.args) for one in calls if _name(one.func) == "suppress"))


def _names(given: ast.expr | None) -> frozenset[str]:
    if given is None:
        return frozenset({ANY})
    return frozenset(map(_name, given.elts if isinstance(given, ast.Tuple) else [given]))


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _words(body: list[ast.stmt]) -> str:
    nodes = (node for one in body for node in ast.walk(one))
    return " ".join(one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str))
