"""A mask of padding that comes with a batch and is read by nothing: the loss of its batch is to leave the padding out."""

from __future__ import annotations

import ast
import re

from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context
from explainer.source.data.padding import shows_tokens
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of
from explainer.source.value.lineage import scope_of

_MASK = re.compile(r"(?:^|_)(?:masks?|valid|keep|present|observed|pad(?:ding)?)(?:_|$)", re.IGNORECASE)
_PADDING = re.compile(r"pad", re.IGNORECASE)


def idle_mask(loss: ast.expr, file: SourceFile, context: Context) -> str | None:
    """The text of a mask that is true on what counts, for a loss with one value for each of its elements; None where none lies idle.

    "" where one does, and which of the two it is true on does not show.
    """
    scope, shape = scope_of(loss, file, context.program), _shape(loss, file, context)
    if scope is None or shape is None:
        return None
    bound = [
        one
        for one in walk(scope)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and _MASK.search(one.id)
    ]
    arguments = [one for one in walk(scope) if isinstance(one, ast.arg) and _MASK.search(one.arg)]
    read = {one.id for one in walk(scope) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    names = {one.id for one in bound} | {one.arg for one in arguments}
    for name in sorted(names - read):
        node = ast.Name(id=name, ctx=ast.Load())
        tensor = seen(node, context)
        if tensor is not None and tensor.shape == shape:
            made = [one for one in bounds_of(scope) if one.name == name and not one.fills]
            values = [Value(one.node, file, {}, one.pick, one.is_element, one.statement) for one in made]
            is_shown = shows_tokens(values[0], context.program) if len(values) == 1 else None
            if is_shown is None and _PADDING.search(name):
                return ""
            return f"~{name}" if is_shown is False else name
    return None


def _shape(loss: ast.expr, file: SourceFile, context: Context) -> tuple[int, ...] | None:
    """The shape of a loss that the live program had under the name which it gets."""
    statement = file.statement(loss)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else loss
    tensor = seen(target, context) if dotted_name(target) is not None else None
    return tensor.shape if tensor is not None else None
