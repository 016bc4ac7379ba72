"""A network learns from what it made in this step, not from what a pool hands back: `D(fake)` for `D(pool.query(fake))` in its loss.

Only where a trace saw that the cut in the pool starves parameters. What else reads the pool goes on with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.loss.pooled import Pooled, find_pooled
from explainer.model.patch import Edit
from explainer.model.trace import STARVING_CUT, STARVING_OFF
from explainer.source.file import SourceFile


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all losses of the networks that the traced lines starve: none trains without its own."""
    edits: dict[Edit, None] = {}
    led: Pooled | None = None
    for kind in (STARVING_CUT, STARVING_OFF):
        for line, file, statement in traced_statements(kind, context, guesses=True):
            for one in find_pooled(_decorated(line.line, file) or statement, file, context.program):
                edits.update(dict.fromkeys(one.edits))
                led = led or one
    if led is not None:
        why = f"is computed of what `{led.pool.name}` hands back without a graph, and trains nothing before it"
        yield Proposal(edits=tuple(edits), culprit=culprit_of(led.file, led.place, why), belief=2.0, is_origin=True)


def _decorated(line: int, file: SourceFile) -> ast.FunctionDef | None:
    """The function of which a line is a decorator, where that is what switches grad mode off."""
    functions = (node for node in file.walk() if isinstance(node, ast.FunctionDef))
    return next((one for one in functions if any(each.lineno == line for each in one.decorator_list)), None)
