"""A cut that is made for one split alone: `if split == "train": ids = ids[:n]`, `truncation=train`. It is made for both."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from explainer.fix.codemod import edit_of, remove_statement
from explainer.fix.data.split_twin import Uneven
from explainer.fix.data.twin import Twin
from explainer.model.patch import Edit
from explainer.source.data.length_cut import LengthCut, is_off
from explainer.source.data.split_side import side_of_test
from explainer.source.file import SourceFile
from explainer.source.loop.step import block_with
from explainer.source.program import Program


def made_for_both(cut: LengthCut, cuts: Collection[ast.expr], program: Program) -> Iterator[Uneven]:
    """The edits that take the condition away, where nothing but the cut hangs on it."""
    file = cut.file
    arguments = [edit for one in cut.bound if (edit := _always(one, file)) is not None]
    if arguments:
        yield Uneven(tuple(arguments), file, cut.node, cut)
        return
    below: ast.AST = cut.node
    for above in file.around(cut.node):
        if isinstance(above, ast.IfExp) and side_of_test(above.test) is not None and below is not above.test:
            other = above.orelse if below is above.body else above.body
            twin = Twin(program, file, file, cuts)
            if twin.match(below, other) and twin.edits:
                assert isinstance(below, ast.expr)
                yield Uneven((edit_of(file, above, file.segment(below)),), file, above, cut)
        if isinstance(above, ast.If) and side_of_test(above.test) is not None and below in above.body:
            edits = _unconditional(above, cuts, file) or _returned(above, cut, cuts, program)
            if edits:
                yield Uneven(tuple(edits), file, above, cut)
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _behind_return(below, above, cut, cuts, program)
            return
        below = above


def _always(value: ast.expr, file: SourceFile) -> Edit | None:
    """`truncation=True` for `truncation=train`, `max_length=n` for `max_length=n if train else None`."""
    if isinstance(value, ast.IfExp) and side_of_test(value.test) is not None:
        kept = [one for one in (value.body, value.orelse) if not is_off(one)]
        return edit_of(file, value, file.segment(kept[0])) if len(kept) == 1 else None
    is_flag = isinstance(value, (ast.Name, ast.Attribute, ast.Compare, ast.UnaryOp))
    return edit_of(file, value, "True") if is_flag and side_of_test(value) is not None else None


def _unconditional(choice: ast.If, cuts: Collection[ast.expr], file: SourceFile) -> list[Edit]:
    """The body of an `if` in its place, where it only cuts what it binds."""
    if choice.orelse or not file.segment(choice).startswith("if") or not all(_is_cut(one, cuts) for one in choice.body):
        return []
    start, end = file.span(choice)
    first = file.line_start(choice.body[0].lineno)
    if choice.body[0].lineno == choice.lineno:
        return [Edit(file=file.path, start=start, end=file.span(choice.body[0])[0], new="")]
    more = len(file.indent(choice.body[0].lineno)) - len(file.indent(choice.lineno))
    lines = file.text[first:end].split("\n")
    text = "\n".join(one[more:] if not one[:more].strip() else one for one in lines)
    return [Edit(file=file.path, start=start, end=end, new=text.lstrip(" \t"))]


def _is_cut(statement: ast.stmt, cuts: Collection[ast.expr]) -> bool:
    """Whether a statement only cuts what it binds: `ids = ids[:n]`, `ids, tags = ids[:n], tags[:n]`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target, value = statement.targets[0], statement.value
    is_row = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
    pairs = zip(target.elts, value.elts, strict=True) if is_row else [(target, value)]  # type: ignore[attr-defined]
    return all(
        isinstance(one, ast.Subscript) and one in cuts and ast.unparse(one.value) == ast.unparse(name)
        for name, one in pairs
    )


def _returned(choice: ast.If, cut: LengthCut, cuts: Collection[ast.expr], program: Program) -> list[Edit]:
    """For `if train: return ids[:n]` and `return ids` behind it, the cut in the latter, which is left alone."""
    block = block_with(choice, cut.file)
    behind = block[block.index(choice) + 1 :][:1]
    twin = Twin(program, cut.file, cut.file, cuts)
    is_pair = len(choice.body) == 1 and not choice.orelse and bool(behind) and isinstance(behind[0], ast.Return)
    if not is_pair or not twin.match(choice.body[0], behind[0]) or not twin.edits:
        return []
    return [remove_statement(cut.file, choice), *twin.edits]


def _behind_return(
    below: ast.AST, function: ast.AST, cut: LengthCut, cuts: Collection[ast.expr], program: Program
) -> Iterator[Uneven]:
    """`if not train: return ids` before `return ids[:n]` goes."""
    body = getattr(function, "body", [])
    at = body.index(below) if below in body else 0
    choice = body[at - 1] if at else None
    if not isinstance(choice, ast.If) or choice.orelse or len(choice.body) != 1 or side_of_test(choice.test) is None:
        return
    twin = Twin(program, cut.file, cut.file, cuts)
    if isinstance(below, ast.Return) and twin.match(below, choice.body[0]) and twin.edits:
        yield Uneven((remove_statement(cut.file, choice),), cut.file, choice, cut)
