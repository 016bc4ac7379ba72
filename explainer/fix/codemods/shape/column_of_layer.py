"""The column of a layer with one output becomes a row where it meets one: `bias + affinity` is `bias.squeeze(-1) + affinity`.

By what the tracer saw put each to each: `[n, 1]` and `[n]`, whose `[n, n]` results the loss averages. Where these meet a
column besides (labels of `[n, 1]`), the row is stood up instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.model.trace import COMBINED, TracedLine
from explainer.source.file import SourceFile
from explainer.source.place import place_of
from explainer.source.tree import walk

_SAID = re.compile(r"of (?P<first>\[[\d, ]*\]) and (?P<second>\[[\d, ]*\]).*\((?P<column>first|second) the column")
_SPAN = re.compile(r"\(characters (\d+) to (\d+) of its line\)")
_INNER = re.compile(r", behind (\d+) `")
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
_WORDS = {"multiply": "mul", "true_divide": "div", "divide": "div", "truediv": "div", "subtract": "sub"}


def propose(context: Context) -> Iterator[Proposal]:
    """One edit of all the columns that were seen; none where a line does not say which of its operands they are."""
    traced = [one for one in context.incident.traced if one.kind == COMBINED]
    found = [_found(one, context) for one in traced]
    first = found[0] if found else None
    if first is None or any(one is None for one in found):
        return
    edits = dict.fromkeys(edit for one in found if one is not None for edit in [one.edit])
    yield Proposal(
        edits=tuple(edits),
        culprit=culprit_of(first.file, first.node, "puts each of n values to each of n others"),
        belief=2.5,
        because="a dimension of 1 holds nothing",
    )


@dataclass(frozen=True, slots=True)
class _Combination:
    """What the program combines on a traced line, and the edit of one operand."""

    file: SourceFile
    node: ast.expr
    edit: Edit


def _found(one: TracedLine, context: Context) -> _Combination | None:
    path = place_of(one.file, context.program.root)
    file = context.program.files.get(path) if path else None
    statement = context.program.at(path, one.line) if path else None
    said = _SAID.search(one.says)
    if file is None or statement is None or said is None:
        return None
    word, inner = _word(one.operation), _INNER.search(one.says)
    nodes = [node for node in walk(statement) if isinstance(node, ast.expr) and _sides(node, word) is not None]
    here = [node for node in nodes if node.lineno == one.line] or nodes
    here = [node for node in here if _is_at(node, _SPAN.search(one.says))] or here
    if len(here) > 1:
        here = [node for node in here if _within(node, word) == (int(inner[1]) if inner else 0)]
    sides = _sides(here[0], word) if len(here) == 1 else None
    if sides is None:
        return None
    column, row = sides if said["column"] == "first" else sides[::-1]
    is_column = one.says.endswith("a column is meant")
    edit = put_method(file, row, ".unsqueeze(-1)") if is_column else put_method(file, column, ".squeeze(-1)")
    return _Combination(file, here[0], edit)


def _is_at(node: ast.expr, span: re.Match[str] | None) -> bool:
    return span is not None and (node.col_offset, node.end_col_offset) == (int(span[1]), int(span[2]))


def _word(operation: str) -> str:
    """One name for an operation: `__radd__` is `add`."""
    bare = operation.strip("_")
    bare = bare[1:] if bare in ("radd", "rsub", "rmul") else bare
    return _WORDS.get(bare, bare)


def _sides(node: ast.expr, word: str) -> tuple[ast.expr, ast.expr] | None:
    """The operands of `a + b`, `a.add(b)` and `torch.add(a, b)`."""
    if isinstance(node, ast.BinOp):
        is_constant = isinstance(node.left, ast.Constant) or isinstance(node.right, ast.Constant)
        is_it = _OPERATORS.get(type(node.op)) == word and not is_constant
        return (node.left, node.right) if is_it else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or _word(node.func.attr) != word:
        return None
    given = [node.func.value, *node.args] if len(node.args) == 1 else node.args
    is_pair = len(given) == 2 and not node.keywords and not any(isinstance(one, ast.Starred) for one in given)
    return (given[0], given[1]) if is_pair else None


def _within(node: ast.expr, word: str) -> int:
    """How many of the same operations stand in the operands themselves."""
    sides = _sides(node, word) or ()
    return sum(1 + _within(one, word) for one in sides if _sides(one, word) is not None)
