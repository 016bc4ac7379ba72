"""The places of a program that cut a sample to a length: `ids[:MAX_LEN]`, `batch[:, :n]`, `tokenizer(text, truncation=True)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.data.split_side import sides_of_word
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.integer import integer_of

# A name that says that a number counts the tokens of a sample, not the samples of a split.
_LENGTH = re.compile(
    r"(?:^|_)(?:max)?(?:len(?:gth)?|tokens?|seq\w*|block|ctx|context|positions?|window|words|steps)(?:$|_)"
)
_WINDOWS = frozenset({"stride", "return_overflowing_tokens"})
_OFF = (None, False, "do_not_truncate")
SPECIAL = 2  # tokens that are added before or behind what was cut


@dataclass(frozen=True, slots=True)
class LengthCut:
    """A slice, or the call of a tokenizer, that cuts; `bound` is the expression that says whether or to which length."""

    file: SourceFile
    node: ast.expr
    bound: tuple[ast.expr, ...]


def find_length_cuts(program: Program, table: int) -> Iterator[LengthCut]:
    """The cuts after which a sample has no more tokens than a table has rows."""
    for file in program.parsed():
        for node in file.walk():
            upper = sliced_to(node)
            if upper is not None and fits(upper, table, file, program):
                assert isinstance(node, ast.expr)
                yield LengthCut(file, node, (upper,))
            elif isinstance(node, ast.Call) and is_truncated(node):
                given = {one.arg: one.value for one in node.keywords}
                length = given.get("max_length")
                if length is None or fits(length, table, file, program, is_named=True):
                    bound = (given["truncation"], *([length] if length is not None else []))
                    yield LengthCut(file, node, bound)
            elif isinstance(node, ast.Call):
                lengths = _handed_on(node, file, program)
                if lengths and all(fits(one, table, file, program, is_named=True) for one in lengths):
                    yield LengthCut(file, node, tuple(lengths))


def sliced_to(node: ast.AST) -> ast.expr | None:
    """The n of `x[:n]`, `x[-n:]`, `x[:, :n]` and `x[..., :n]`."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    slices = [one for one in parts if isinstance(one, ast.Slice) and (one.lower or one.upper or one.step)]
    if len(slices) != 1 or slices[0] is not parts[-1] or slices[0].step is not None:
        return None
    lower, upper = slices[0].lower, slices[0].upper
    if lower is None or (isinstance(lower, ast.Constant) and lower.value == 0):
        return upper
    is_end = upper is None and isinstance(lower, ast.UnaryOp) and isinstance(lower.op, ast.USub)
    return lower.operand if is_end and isinstance(lower, ast.UnaryOp) else None


def is_truncated(call: ast.Call) -> bool:
    """Whether a tokenizer is told to truncate, to one piece of each text."""
    given = {one.arg: one.value for one in call.keywords}
    on = given.get("truncation")
    return on is not None and not is_off(on) and not _WINDOWS & given.keys()


def _handed_on(call: ast.Call, file: SourceFile, program: Program) -> list[ast.expr]:
    """The lengths that a function is given by who runs it: `partial(encode, max_length=64)`, `fn_kwargs={"max_length": 64}`."""
    pairs = (
        [(one.arg, one.value) for one in call.keywords]
        if program.names(file).is_call(call, "functools.partial")
        else []
    )
    for one in call.keywords:
        if one.arg == "fn_kwargs" and isinstance(one.value, ast.Dict):
            keys = [getattr(key, "value", None) for key in one.value.keys]
            pairs += zip(keys, one.value.values, strict=True)
    return [value for name, value in pairs if isinstance(name, str) and _LENGTH.search(name) and not is_off(value)]


def is_off(node: ast.expr) -> bool:
    """Whether an argument says that nothing is cut."""
    return isinstance(node, ast.Constant) and any(node.value is one or node.value == one for one in _OFF)


def fits(bound: ast.expr, table: int, file: SourceFile, program: Program, *, is_named: bool = False) -> bool:
    """Whether a length is no more than a table has, or is called a length where it is not known.

    A plain number has to be that of the table, or short of it by what is added: `rows[:48]` may count samples.
    """
    names = [one for one in walk(bound) if isinstance(one, (ast.Name, ast.Attribute))]
    words = [(dotted_name(one) or "").rpartition(".")[2].lower() for one in names]
    is_named = is_named or any(_LENGTH.search(one) and not sides_of_word(one) for one in words)
    length = length_of(bound, file, program)
    if length is None:
        return is_named
    return 1 < length <= table if is_named else table - SPECIAL <= length <= table


def length_of(bound: ast.expr, file: SourceFile, program: Program) -> int | None:
    """The number that a length is, where the program or its settings say one."""
    known = integer_of(Value(bound, file), program)
    if known is None and isinstance(bound, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
        written = {one.value for one in settings_behind(bound, file, program) if type(one.value) is int}
        known = written.pop() if len(written) == 1 else None
    return known
