"""The preparation of one split that lacks the cut which that of the other split has, where both are written side by side."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from explainer.fix.codemod import edit_of
from explainer.fix.data.twin import Place, Twin, text_at
from explainer.fix.text.rewrite import add_argument
from explainer.model.patch import Edit
from explainer.source.data.length_cut import LengthCut, is_off, is_truncated
from explainer.source.data.split_side import side_of
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program

_SAME = ("truncation", "max_length", "padding")


@dataclass(frozen=True, slots=True)
class Uneven:
    """The edits that even out what is done to two splits; `node` is what lacks the cut, `cut` what has it."""

    edits: tuple[Edit, ...]
    file: SourceFile
    node: ast.AST
    cut: LengthCut


def twins_of(cut: LengthCut, cuts: Collection[ast.expr], program: Program) -> Iterator[Uneven]:
    """What does the same to the other split without the cut: a function, else a statement, else the call of a tokenizer."""
    side = side_of(cut.node, cut.file, program)
    if side is None:
        return
    found = list(_functions(cut, cuts, side, program)) or list(_statements(cut, cuts, side, program))
    yield from found or _calls(cut, side, program)


def _twin(cut: LengthCut, file: SourceFile, cuts: Collection[ast.expr], program: Program) -> Twin:
    return Twin(program, cut.file, file, cuts)


def _is_other(node: ast.AST, file: SourceFile, side: str, program: Program) -> bool:
    return side_of(node, file, program) not in (None, side)


def _functions(cut: LengthCut, cuts: Collection[ast.expr], side: str, program: Program) -> Iterator[Uneven]:
    own = program.names(cut.file).function_of(cut.node)
    if own is None:
        return
    for file, function in program.functions():
        twin = _twin(cut, file, cuts, program)
        is_alike = function is not own and twin.match(own.args.args, function.args.args)
        if (
            is_alike
            and twin.match(_body(own), _body(function))
            and twin.edits
            and _is_other(function, file, side, program)
        ):
            yield Uneven(tuple(twin.edits), file, twin.places[0], cut)


def _body(function: Function) -> list[ast.stmt]:
    """The statements of a function without what it says of itself."""
    first = function.body[0]
    is_prose = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return function.body[1:] if is_prose else function.body


def _statements(cut: LengthCut, cuts: Collection[ast.expr], side: str, program: Program) -> Iterator[Uneven]:
    own = cut.file.statement(cut.node)
    if hasattr(own, "body"):
        return
    for file in program.parsed():
        for one in file.walk():
            if type(one) is not type(own) or one is own:
                continue
            twin = _twin(cut, file, cuts, program)
            if twin.match(own, one) and twin.edits and _is_other(one, file, side, program):
                yield Uneven(tuple(twin.edits), file, twin.places[0], cut)


def _calls(cut: LengthCut, side: str, program: Program) -> Iterator[Uneven]:
    """Calls of the same tokenizer, whatever else is done to the split."""
    if not isinstance(cut.node, ast.Call) or not is_truncated(cut.node):
        return
    name = dotted_name(cut.node.func)
    for file in program.parsed():
        for call in file.walk():
            if not isinstance(call, ast.Call) or name is None or dotted_name(call.func) != name:
                continue
            given = {one.arg for one in call.keywords}
            is_bare = not is_truncated(call) and "max_length" not in given and None not in given
            edits = _told(cut, call, file, program) if is_bare and _is_other(call, file, side, program) else ()
            if edits:
                yield Uneven(tuple(edits), file, call, cut)


def _told(cut: LengthCut, call: ast.Call, file: SourceFile, program: Program) -> Sequence[Edit]:
    """The edits that tell a tokenizer what the other call does; how it pads is left to it where it says so."""
    assert isinstance(cut.node, ast.Call)
    given = {one.arg: one.value for one in call.keywords}
    edits = []
    for one in cut.node.keywords:
        if one.arg not in _SAME or (one.arg in given and not is_off(given[one.arg])):
            continue
        text = text_at(Place(cut.file, one.value), Place(file, call), program)
        if text is None:
            return ()
        value = given.get(one.arg)
        edits.append(edit_of(file, value, text) if value is not None else add_argument(file, call, f"{one.arg}={text}"))
    return edits
