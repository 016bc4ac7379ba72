"""`loss = net(x).mean()` becomes `loss = model(x).mean()` behind `model = DistributedDataParallel(net)`, and so does `model.module(x)`.

DDP averages the backward of its own forward. Only where a run was seen to call a module past the wrapper of a line in all its steps.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from explainer.fix.clue.wrapper import Wrap, seen_wraps
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.verification import BYPASSED
from explainer.source.graph.write import is_without_grad
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

_ALONE = "wraps a module that is called past it"
_WHY = "calls the module past its wrapper, which averages the gradients of its own forward alone"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all calls past each wrapper; the line that wraps where none is found."""
    for wrap in seen_wraps(BYPASSED, context):
        file, within = wrap.file, dotted_name(wrap.module)
        past = {f"{wrap.name}.module"} | ({within} if within is not None and within != wrap.name else set())
        calls = [one for one in _calls(wrap, past, context.program) if not is_without_grad(one, file, context.program)]
        culprit = culprit_of(file, calls[0] if calls else wrap.statement, _WHY if calls else _ALONE)
        edits = tuple(edit_of(file, one.func, wrap.name) for one in calls)
        yield Proposal(edits=edits, culprit=culprit, belief=2.5, is_origin=True)


def _calls(wrap: Wrap, names: Collection[str], program: Program) -> Iterator[ast.Call]:
    """The calls by some names where the wrapper's own name means it: in its class, its function or its file."""
    known = program.names(wrap.file)
    is_own = wrap.name.startswith("self.")
    scope = known.class_of(wrap.statement) if is_own else known.function_of(wrap.statement)
    for one in walk(scope or wrap.file.tree or wrap.statement):
        if isinstance(one, ast.Call) and one is not wrap.call and dotted_name(one.func) in names:
            yield one
