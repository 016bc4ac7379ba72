"""`model = DistributedDataParallel(net)` stands again behind what thaws a part of `net`: the wrapper averages what trained when it wrapped.

    for epoch in range(epochs):
        thaw(net, epoch)
        model = DistributedDataParallel(net)   # new

Only where a run was seen to train, on each rank apart, what the wrapper of a line does not average.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.wrapper import seen_wraps
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after
from explainer.model.verification import THAWED
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.freeze import find_freezes
from explainer.source.program import Program
from explainer.source.value.callee import leads_to
from explainer.source.value.lineage import before, scope_of, statements_of

_WHY = "wraps the module before all that is to train requires grad: DDP averages only what does by then"
_BLOCKS = (ast.For, ast.While, ast.If, ast.With, ast.Try)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each wrapper that was seen to miss what trains; its line alone where what thaws is not known."""
    for wrap in seen_wraps(THAWED, context):
        file, name = wrap.file, wrap.name
        thaws = [one for one in _thaws(wrap.statement, file, context.program) if before(wrap.statement, one)]
        text = file.segment(wrap.statement)
        if dotted_name(wrap.module) == name:  # `model = DDP(model)`: what is wrapped by now stands within
            start, end = file.span(wrap.module)
            at = file.span(wrap.statement)[0]
            text = f"{text[: start - at]}{name}.module{text[end - at :]}"
        edits = tuple(insert_after(file, one, text) for one in thaws) if len(thaws) == 1 else ()
        yield Proposal(edits=edits, culprit=culprit_of(file, wrap.statement, _WHY), belief=2.5, is_origin=True)


def _thaws(wrap: ast.stmt, file: SourceFile, program: Program) -> Iterator[ast.stmt]:
    """The innermost statements of the wrapper's function that switch flags on, or call what does."""
    flags = [(one.file, one.statement) for one in find_freezes(program) if one.is_on]
    scope = scope_of(wrap, file, program)
    for one in statements_of(scope) if scope is not None else ():
        is_flag = any(where is file and each is one for where, each in flags)
        is_way = not isinstance(one, _BLOCKS) and any(leads_to(each, one, file, program) for _, each in flags)
        if is_flag or is_way:
            yield one
