"""`nn.ReLU(inplace=True)` becomes `nn.ReLU(inplace=False)`, also in a functional call: the activation's input stays.

Where the argument comes from a configuration file, a dictionary or a default, that is what is edited. So is what switches the flag
of a module on that was made without it: `module.inplace = True`.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from explainer.fix.clue.suspicion import suspect
from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of
from explainer.fix.setting.edit import set_value
from explainer.fix.write.result import take_results
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.source.graph.write import ARGUMENT, Write, find_writes
from explainer.source.program import Program

_FLAG = "inplace"
_ARGUMENTS_OF_SETATTR = 3
_WHY = "writes its input in place, also where another backward needs it"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each suspicious `inplace=True`."""
    together: list[Edit] = []
    places: list[Culprit] = []
    for write in find_writes(context.program):
        belief = suspect(write, context) if write.kind == ARGUMENT else None
        if belief is None or not context.has_failed:
            continue
        if write.settings:
            yield from _in_settings(write, belief, context.program)
            continue
        assert isinstance(write.node, ast.Call)
        (keyword,) = [one for one in write.node.keywords if one.arg == "inplace"]
        results = take_results(write.node, write.file, context.program)
        if results is None:
            continue
        edits = (*results, edit_of(write.file, keyword.value, "False"))
        together += edits
        places.append(culprit_of(write.file, write.node, _WHY))
        yield Proposal(edits=edits, culprit=places[-1], belief=belief - 0.2)
    yield from _switched_on(context)
    if len(places) > 1 and context.options.get("at") == "raise":
        yield Proposal(edits=tuple(dict.fromkeys(together)), culprit=places[0], belief=0.6)


def _switched_on(context: Context) -> Iterator[Proposal]:
    """`module.inplace = True`, `setattr(module, "inplace", True)`: of modules that may be any."""
    for file in context.program.parsed() if context.has_failed else ():
        for node in file.walk():
            value = _flag_of(node)
            if isinstance(value, ast.Constant) and value.value is True:
                why = "switches on that a module writes its input in place, also where another backward needs it"
                yield Proposal(edits=(edit_of(file, value, "False"),), culprit=culprit_of(file, node, why), belief=0.8)


def _flag_of(node: ast.AST) -> ast.expr | None:
    """What a statement or a call sets the flag to."""
    if isinstance(node, ast.Assign):
        return node.value if any(isinstance(one, ast.Attribute) and one.attr == _FLAG for one in node.targets) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
        name = node.args[1] if len(node.args) == _ARGUMENTS_OF_SETATTR else None
        return node.args[2] if isinstance(name, ast.Constant) and name.value == _FLAG else None
    return None


def _in_settings(write: Write, belief: float, program: Program) -> Iterator[Proposal]:
    """One edit for all the settings that switch the same argument on."""
    edits = [set_value(one, False) for one in write.settings]  # noqa: FBT003 - the value that is written
    done = tuple(one for one in edits if isinstance(one, Edit))
    results = take_results(write.node, write.file, program) if isinstance(write.node, ast.Call) else None
    if len(done) == len(edits) and results is not None:
        first = write.settings[0]
        span = (first.key[0] if first.key else first.span[0], first.span[1])
        place = f"{os.path.basename(write.file.path)}:{write.node.lineno}"
        yield Proposal(
            edits=(*results, *done),
            culprit=culprit_at(first.file, span, f"makes the module of {place} write its input in place"),
            belief=belief - 0.2,
        )
