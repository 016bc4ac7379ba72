"""Parts of a date that count from 1 are made codes from 0: `"month": index.month - 1`, beside `"month": 12` rows.

For codes and tables that go through dictionaries, where the way from the one to the other cannot be followed: what ties them is the
word, and the number of rows, which is that of the part of the date. `count_index_from_zero` knows those that can be followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import operand, replace_whole
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.integer import CALENDAR, is_about_dates

_TABLES = ("torch.nn.Embedding", "torch.nn.EmbeddingBag")


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all parts of dates whose tables have a row for each and none for 0."""
    if "index out of range" not in message_of(context) or not is_about_dates(context.program):
        return
    rows = set(_rows(context.program))
    found = [
        (file, node)
        for file in context.program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Attribute) and _is_code(node, file, rows)
    ]
    if found:
        file, first = found[0]
        last = CALENDAR[first.attr][1]
        yield Proposal(
            edits=tuple(replace_whole(where, node, f"{operand(where, node)} - 1") for where, node in found),
            culprit=culprit_of(file, first, f"counts from 1 to {last}, and the table has rows 0 to {last - 1}"),
            belief=2.2,
            applicability="safe",
            because="row 0 is the first code's; a state dict that was saved with codes from 1 has its rows one further on",
            title="Count from 0 where the code is made: `date.month - 1`",
        )


def _rows(program: Program) -> Iterator[tuple[str, int]]:
    """The numbers that a dictionary or the name of a table gives a word: `{"month": 12}`, `self.month = nn.Embedding(12, 8)`."""
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    yield from _pair(getattr(key, "value", None), value)
            elif (
                isinstance(node, ast.Assign)
                and names.is_call(node.value, *_TABLES)
                and isinstance(node.value, ast.Call)
            ):
                yield from (pair for one in node.value.args[:1] for pair in _pair(ast.unparse(node.targets[0]), one))


def _pair(word: object, value: ast.expr) -> Iterator[tuple[str, int]]:
    if isinstance(word, str) and isinstance(value, ast.Constant) and type(value.value) is int:
        yield word, value.value


def _is_code(node: ast.Attribute, file: SourceFile, rows: set[tuple[str, int]]) -> bool:
    """Whether a part of a date that counts from 1 is taken as a code, under a word that has as many rows."""
    low, high = CALENDAR.get(node.attr, (0, 0))
    if low != 1 or not isinstance(node.ctx, ast.Load):
        return False
    above = file.parents.get(node)
    word = node.attr
    if isinstance(above, ast.Dict):
        keys = [getattr(key, "value", "") for key, value in zip(above.keys, above.values, strict=True) if value is node]
        word = str(keys[0]) if keys else word
    elif not isinstance(above, (ast.List, ast.Tuple, ast.Assign)):
        return False  # arithmetic on it, as for its sine, is meant as it is
    return any(number == high and (one == word or node.attr in one) for one, number in rows) and not _is_unpacked(above)


def _is_unpacked(node: ast.AST | None) -> bool:
    return node is None or any(isinstance(one, ast.Starred) for one in walk(node))
