"""`loss = net(x).mean()` becomes `loss = model(x).mean()` behind `model = DistributedDataParallel(net)`, and so does `model.module(x)`.

DDP averages the backward of its own forward. Only where a run was seen to call a module past the wrapper of a line in all its steps.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.verification import BYPASSED
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

_SEEN = re.compile(rf"(\S+):(\d+) {re.escape(BYPASSED)}")
_WHY = "calls the module past its wrapper, which averages the gradients of its own forward alone"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all calls past each wrapper; the line that wraps where none is found."""
    for path, line in dict.fromkeys(
        found.groups() for one in context.incident.log if (found := _SEEN.search(one.text))
    ):
        for file in context.program.parsed():
            if file.path.replace("\\", "/").rpartition("/")[2] == path:
                yield from _called(file, int(line), context.program)


def _called(file: SourceFile, line: int, program: Program) -> Iterator[Proposal]:
    wrap = program.at(file.path, line)
    name = dotted_name(wrap.targets[0]) if isinstance(wrap, ast.Assign) and len(wrap.targets) == 1 else None
    made = wrap.value if isinstance(wrap, ast.Assign) else None
    if wrap is None or name is None or not isinstance(made, ast.Call) or not made.args:
        return
    within = dotted_name(made.args[0])
    past = {f"{name}.module"} | ({within} if within is not None and within != name else set())
    names = program.names(file)
    scope = names.class_of(wrap) if name.startswith("self.") else names.function_of(wrap)
    calls = [
        one
        for one in walk(scope or file.tree or wrap)
        if isinstance(one, ast.Call)
        and dotted_name(one.func) in past
        and one is not made
        and not is_without_grad(one, file, program)
    ]
    edits = tuple(edit_of(file, one.func, name) for one in calls)
    culprit = (
        culprit_of(file, calls[0], _WHY) if calls else culprit_of(file, wrap, "wraps a module that is called past it")
    )
    yield Proposal(edits=edits, culprit=culprit, belief=2.5, is_origin=True)
