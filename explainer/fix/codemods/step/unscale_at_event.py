"""A callback that unscales and clips listens to the event right before the scaler's step: `before_step` for `after_backward`.

Where a run goes back several times before each step, an event behind each backward unscales more than once. The method of the
callback gets the name of an event that its base class has, and that the statements before the scaler's step fire.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.loop.listener import Listener, listener_at, method_of, rename_method
from explainer.source.loop.step import BACKWARD, SCALER_STEP, UNSCALE, Act, find_acts
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import block_of
from explainer.source.value.resolve import resolver_of

_TWICE = "unscale_() has already been called on this optimizer"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the method that unscaled a second time."""
    program = context.program
    acts = list(find_acts(program)) if _TWICE in message_of(context) else []
    unscales = {one.statement for one in acts if one.kind == UNSCALE}
    steps = [one for one in acts if one.kind == SCALER_STEP]
    for file, statement in list(raised_at(context))[:1]:
        listener = listener_at(file, statement, program) if statement in unscales and len(steps) == 1 else None
        method = listener.function if listener is not None else None
        if listener is None or listener.owner is None or not isinstance(method, ast.FunctionDef):
            continue
        events = list(dict.fromkeys(_events(steps[0], program)))
        found = [one for one in events if _may_be(one, method, listener, program)]
        if len(found) == 1 and method.name not in events:
            yield Proposal(
                edits=(rename_method(listener, method, found[0]),),
                culprit=culprit_of(
                    file, statement, f"unscales at `{method.name}`, which comes more often than the scaler's step"
                ),
                belief=2.2,
                title=f"Unscale and clip at `{found[0]}`, right before the scaler's step, instead of at `{method.name}`",
            )


def _events(step: Act, program: Program) -> Iterator[str]:
    """The words and methods of the calls that stand before the scaler's step in its block, and behind a backward there."""
    block = list(block_of(step.statement, step.file))
    before = block[: block.index(step.statement)]
    backwards = [one.statement for one in find_acts(program) if one.kind == BACKWARD and one.statement in before]
    for one in before[before.index(backwards[-1]) + 1 if backwards else 0 :]:
        for node in walk(one):
            if isinstance(node, ast.Call):
                yield from (
                    word.value for word in node.args if isinstance(word, ast.Constant) and isinstance(word.value, str)
                )
                if isinstance(node.func, ast.Attribute):
                    yield node.func.attr


def _may_be(event: str, method: ast.FunctionDef, listener: Listener, program: Program) -> bool:
    """Whether a base class of the callback has a method for the event that is given the same, and the callback has none."""
    assert listener.owner is not None
    if method_of(listener.owner, event) is not None:
        return False
    resolver = resolver_of(program)
    bases = [one for base in listener.owner.bases if (one := resolver.find_class(base, listener.file)) is not None]
    own = [resolver.method(owner, event, where) for where, owner in bases]
    return any(one is not None and ast.unparse(one[1].args) == ast.unparse(method.args) for one in own)
