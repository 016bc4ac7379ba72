"""An average of a model's state leaves integers out: `if not value.is_floating_point(): kept[name].copy_(value); continue`.

A batch normalisation counts its batches in int64, and no average of counts is one. Where a loop over states or buffers averages
in place and the live value was an integer, the loop copies such values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.source.file import SourceFile
from explainer.source.name import bound_names
from explainer.source.tree import walk
from explainer.source.value.lineage import loops_of
from explainer.source.value.sign import definition_of

_STATES = frozenset({"state_dict", "buffers", "named_buffers"})
_WRITES = frozenset({"mul_", "lerp_", "add_", "sub_", "div_"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loop whose statement raised at an integer."""
    for file, statement in list(raised_at(context))[:1]:
        loops = [one for one in loops_of(statement, file) if isinstance(one, ast.For)]
        kept = _written(statement)
        if not loops or kept is None:
            continue
        inner = max(loops, key=lambda one: one.lineno)
        walked = set(bound_names(inner))
        read = [
            one
            for one in walk(statement)
            if isinstance(one, ast.Name) and one.id in walked and one not in set(walk(kept))
        ]
        values = [one for one in read if (tensor := seen(one, context)) is not None and tensor.is_integer]
        if (
            len({one.id for one in values}) != 1
            or statement not in inner.body
            or not _is_of_state(inner, file, context)
        ):
            continue
        value, target = values[0].id, file.segment(kept)
        text = f"if not {value}.is_floating_point():\n    {target}.copy_({value})\n    continue"
        why = f"averages `{value}`, which is an integer for some names, such as a batch normalisation's count"
        yield Proposal(
            edits=(insert_before(file, statement, text),), culprit=culprit_of(file, statement, why), belief=2.0
        )


def _is_of_state(loop: ast.For, file: SourceFile, context: Context) -> bool:
    """Whether a loop walks the state or the buffers of a module, itself or by a name."""
    walked = [one for one in walk(loop.iter) if isinstance(one, ast.expr)]
    behind = [made for one in walked if (made := definition_of(one, file, context.program)) is not None]
    return any(
        isinstance(one, ast.Attribute) and one.attr in _STATES for each in (*walked, *behind) for one in walk(each)
    )


def _written(statement: ast.stmt) -> ast.expr | None:
    """The tensor that a chain of writes in place begins at: `kept[name]` of `kept[name].mul_(d).add_(value, alpha=1 - d)`."""
    node = statement.value if isinstance(statement, ast.Expr) else None
    found = None
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _WRITES:
        found = node = node.func.value
    return found
