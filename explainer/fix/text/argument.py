"""Text of calls that several codemods change: a keyword taken out, the loss of a backward call replaced."""

from __future__ import annotations

import ast

from explainer.fix.codemod import edit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile

_LOOSER = (ast.IfExp, ast.Lambda, ast.BoolOp, ast.Compare, ast.NamedExpr, ast.Yield)


def drop_keyword(file: SourceFile, call: ast.Call, keyword: ast.keyword) -> Edit:
    """The edit that takes a keyword argument, with its comma, out of a call."""
    parts: list[ast.expr | ast.keyword] = sorted(
        [*call.args, *call.keywords], key=lambda one: (one.lineno, one.col_offset)
    )
    at = parts.index(keyword)
    start, end = file.span(keyword)
    if at:
        start = file.span(parts[at - 1])[1]
    elif len(parts) > 1:
        end = file.span(parts[1])[0]
    return Edit(file=file.path, start=start, end=end, new="")


def drop_argument(file: SourceFile, call: ast.Call, argument: ast.expr) -> Edit:
    """The edit that takes a positional argument, with its comma, out of a call."""
    parts: list[ast.expr | ast.keyword] = sorted(
        [*call.args, *call.keywords], key=lambda one: (one.lineno, one.col_offset)
    )
    at = parts.index(argument)
    start, end = file.span(argument)
    if at:
        start = file.span(parts[at - 1])[1]
    elif len(parts) > 1:
        end = file.span(parts[1])[0]
    return Edit(file=file.path, start=start, end=end, new="")


def add_keyword(file: SourceFile, call: ast.Call, text: str) -> Edit:
    """The edit that puts `name=value` at the end of a call's arguments; in place of a keyword of that name."""
    name = text.partition("=")[0]
    for keyword in call.keywords:
        if keyword.arg == name:
            return edit_of(file, keyword, text)
    parts: list[ast.expr | ast.keyword] = sorted(
        [*call.args, *call.keywords], key=lambda one: (one.lineno, one.col_offset)
    )
    if not parts:
        end = file.span(call)[1] - 1
        return Edit(file=file.path, start=end, end=end, new=text)
    end = file.span(parts[-1])[1]
    if len(parts) == 1 and isinstance(parts[0], ast.GeneratorExp):
        return edit_of(file, parts[0], f"({file.segment(parts[0]).strip('()')}), {text}")
    return Edit(file=file.path, start=end, end=end, new=f", {text}")


def term(file: SourceFile, node: ast.expr) -> str:
    """The text of an expression as a term of a sum."""
    text = file.segment(node)
    return f"({text})" if isinstance(node, _LOOSER) else text
