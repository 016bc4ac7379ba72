"""A forward that registers a hook does so where there is a graph: `if h.requires_grad:` before `h.register_hook(...)`.

An evaluation under `no_grad` runs the same forward, and there is no gradient that the hook could see.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places, message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import in_block
from explainer.source.graph.write import is_without_grad
from explainer.source.name import dotted_name

_SAYS = "cannot register a hook on a tensor that doesn't require gradient"
_EVALUATES = re.compile(r"eval|valid|test|predict|infer|sample|score", re.IGNORECASE)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the statement that registers a hook below a function of the program that runs without grad."""
    if _SAYS not in message_of(context):
        return
    for file, statement in list(raised_at(context))[:1]:
        call = statement.value if isinstance(statement, ast.Expr) else None
        func = call.func if isinstance(call, ast.Call) else None
        if not isinstance(func, ast.Attribute) or func.attr != "register_hook" or dotted_name(func.value) is None:
            continue
        if not _is_evaluated(statement, context):
            continue
        edits = in_block(file, [statement], f"if {file.segment(func.value)}.requires_grad:")
        if edits:
            yield Proposal(
                edits=edits,
                culprit=culprit_of(
                    file, statement, "registers a hook in a forward that an evaluation runs without a graph"
                ),
                belief=2.5,
            )


def _is_evaluated(statement: ast.stmt, context: Context) -> bool:
    """Whether a function above, which evaluates by its name or after steps that went well, switches grad mode off."""
    program = context.program
    off = [
        (file, one)
        for file, one in crash_places(context)
        if one is not statement and is_without_grad(one, file, program)
    ]
    around = [program.names(file).function_of(one) for file, one in off]
    stepped = any(
        fact.name in ("live_steps", "steps_done") and str(fact.value) not in ("", "0")
        for fact in context.incident.facts
    )
    return bool(off) and (stepped or any(one is not None and _EVALUATES.search(one.name) for one in around))
