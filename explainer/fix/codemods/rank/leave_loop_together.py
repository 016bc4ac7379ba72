"""Every rank leaves a loop of training in the same round: the condition of a `break` is reduced before it is asked.

`if stopping.update(val_loss): break` asks for what this rank alone has seen; the rank that goes on waits in its next collective for
one that has left. All leave where one would: `dist.all_reduce(stop, op=dist.ReduceOp.MAX)`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.fix.text.rewrite import spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.rank_branch import EXCHANGES
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, scope_of
from explainer.source.value.resolve import resolver_of

_LOST = re.compile(r"Connection closed by peer|reset by peer|[Tt]imed? ?out|Broken pipe|Application timeout")
_DISTRIBUTED = "torch.distributed"
_COUNTS = ("len", "min", "max", "int", "abs", "isinstance", "hasattr")  # the same on all ranks for the same values
_FREE = ("stop", "stops", "leaves")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each `break` of a loop around the failing line whose condition the ranks do not share."""
    if not any(_LOST.search(one.message) for one in context.incident.exceptions):
        return
    for file, statement in crash_places(context):
        names = context.program.names(file)
        loop = file.enclosing(statement, ast.For, ast.While)
        while isinstance(loop, (ast.For, ast.While)):
            for leaving in _leaving(loop):
                if _is_own(leaving.test, file, context.program):
                    why = "leaves the loop by what this rank alone has computed, while the others wait for it"
                    yield Proposal(
                        edits=tuple(_together(leaving, file, names)),
                        culprit=culprit_of(file, leaving, why),
                        belief=2.2,
                        is_origin=True,
                    )
            loop = file.enclosing(loop, ast.For, ast.While, ast.FunctionDef)


def _leaving(loop: ast.For | ast.While) -> Iterator[ast.If]:
    """The `if` of a loop's own body that does no more than leave it."""
    for one in loop.body:
        if isinstance(one, ast.If) and not one.orelse and isinstance(one.body[-1], ast.Break):
            yield one


def _is_own(test: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a condition asks for what is computed in each round, and no collective has made it the same on all ranks."""
    calls = [node for node in walk(test) if isinstance(node, ast.Call) and dotted_name(node.func) not in _COUNTS]
    asked = {node.id for node in walk(test) if isinstance(node, ast.Name)}
    scope = scope_of(test, file)
    shared = [node for node in walk(scope) if isinstance(node, ast.Call) and _is_collective(node, file, program)]
    if any(isinstance(node, ast.Name) and node.id in asked for call in shared for node in walk(call)):
        return False
    made = [one.node for one in bounds_of(scope) if one.name in asked and not one.is_element]
    calls += [node for one in made for node in walk(one) if isinstance(node, ast.Call)]
    own = [resolver_of(program).function_of(call, Value(call, file)) for call in calls]
    inside = [node for one in own if one is not None for node in walk(one[1]) if isinstance(node, ast.Call)]
    return bool(calls) and not any(_is_collective(one, file, program) for one in inside)


def _is_collective(call: ast.Call, file: SourceFile, program: Program) -> bool:
    return program.names(file).is_call(call, *EXCHANGES)


def _together(leaving: ast.If, file: SourceFile, names: Names) -> Iterator[Edit]:
    """The condition as a number that all ranks reduce; none where the file has no `torch.distributed`."""
    dist, tensor = spell(names, _DISTRIBUTED), spell(names, "torch.tensor")
    if dist.partition(".")[0] not in names.imports or tensor.partition(".")[0] not in names.imports:
        return
    bound = {one.name for one in bounds_of(scope_of(leaving, file))}
    name = next((one for one in _FREE if one not in bound), "_stop")
    device = ', device="cuda"' if "nccl" in file.text else ""
    lines = (
        f"{name} = {tensor}(float(bool({file.segment(leaving.test)})){device})",
        f"{dist}.all_reduce({name}, op={dist}.ReduceOp.MAX)",
    )
    yield insert_before(file, leaving, "\n".join(lines))
    yield edit_of(file, leaving.test, f"{name} > 0")
