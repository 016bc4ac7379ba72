"""A schedule that goes on in the middle, `LambdaLR(optimizer, f, last_epoch=step)`, is made behind `optimizer.load_state_dict(...)`.

It reads the `initial_lr` of each group, which the optimizer of a new process has from the checkpoint alone. Where the schedule's own
state is loaded as well, `last_epoch` is left out: that state holds it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, lines_of, remove_statement
from explainer.fix.text.rewrite import remove_argument
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bind_call
from explainer.source.value.lineage import binds, block_of, reads
from explainer.source.value.resolve import resolver_of

_MESSAGE = "param 'initial_lr' is not specified"
_DEPTH = 3
_WHY = "goes on with a schedule before the optimizer has its state, and with it the first learning rate"


def propose(context: Context) -> Iterator[Proposal]:
    """The innermost statement of the failure that makes a schedule of an optimizer whose state is loaded further down."""
    if not any(_MESSAGE in one.message for one in context.incident.exceptions):
        return
    for file, statement in failing_statements(context):
        call = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
        if not isinstance(call, ast.Call):
            continue
        given = _given(call)
        block, made = list(block_of(statement, file)), set(binds(statement))
        rest = block[block.index(statement) + 1 :]
        behind = next((one for one in rest if _loads(one, given, file, context.program)), None)
        if behind is None:
            continue
        culprit = culprit_of(file, statement, _WHY)
        if any(_loads(one, made, file, context.program) for one in rest):
            last = next((one for one in call.keywords if one.arg == "last_epoch"), None)
            if last is not None:
                yield Proposal(edits=(remove_argument(file, call, last),), culprit=culprit, belief=2.5)
        elif not any(made & reads(one, graph=False) for one in rest[: rest.index(behind) + 1]):
            edits = remove_statement(file, statement), insert_after(file, behind, lines_of(file, statement))
            yield Proposal(edits=edits, culprit=culprit, belief=2.5)
        return


def _loads(statement: ast.stmt, names: set[str], file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether a statement loads the state of one of these objects, itself or by a function that it hands one to."""
    for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict":
            if dotted_name(call.func.value) in names:
                return True
            continue
        found = (
            resolver_of(program).function_of(call, Value(call, file))
            if depth < _DEPTH and names & _given(call)
            else None
        )
        if found is not None:
            where, function = found
            inner = {
                name
                for name, one in bind_call(call, function, Value(call, file)).items()
                if dotted_name(one.node) in names
            }
            if any(_loads(one, inner, where, program, depth + 1) for one in function.body):
                return True
    return False


def _given(call: ast.Call) -> set[str]:
    return {name for one in (*call.args, *(each.value for each in call.keywords)) if (name := dotted_name(one))}
