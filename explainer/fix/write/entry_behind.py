"""The entry of a container put in behind the write that it shows: `h *= gate` after `taps.append(h)` as `h = h * gate; taps.append(h)`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from explainer.fix.codemod import insert_after, remove_statement
from explainer.model.patch import Edit
from explainer.source.graph.alias import is_put
from explainer.source.graph.write import Write
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.lineage import block_of


def entry_behind(write: Write, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits of a write out of place, with the one statement before it in its block that puts its tensor away moved behind.

    None where there is no such statement, or where what stands between the two reads the container.
    """
    file, statement = write.file, write.file.statement(write.node)
    block = block_of(statement, file)
    before = block[: block.index(statement)] if statement in block else ()
    puts = [one for one in before if isinstance(one, ast.Expr) and is_put(one.value, write.name or "")]
    if len(puts) != 1 or not isinstance(statement, (ast.AugAssign, ast.Assign, ast.Expr)):
        return ()
    (put,) = puts
    container = dotted_name(getattr(getattr(put.value, "func", None), "value", None))
    between = before[before.index(put) + 1 :]
    if container is None or any(dotted_name(node) == container for one in between for node in walk(one)):
        return ()
    return (*edits, remove_statement(file, put), insert_after(file, statement, file.segment(put)))
