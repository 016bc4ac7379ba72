"""`optimizer.consolidate_state_dict(to=0)` stands before the `if rank == 0:` in which a sharded optimizer's state is saved.

Each rank of a `ZeroRedundancyOptimizer` holds a part of the state; all of them hand theirs over, and so all have to call it: within
the branch it would wait for ever.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.source.file import SourceFile
from explainer.source.loop.rank_branch import asks_for_rank
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_MESSAGE = "has not been consolidated on this rank"
_OPTIMIZER = re.compile(r"opt", re.IGNORECASE)
_WHY = "reads the state of a sharded optimizer of which this rank holds a part"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the innermost statement of the failure that reads an optimizer's state."""
    if not any(_MESSAGE in one.message for one in context.incident.exceptions):
        return
    for file, statement in failing_statements(context):
        reads = [
            (one, name)
            for one in walk(statement)
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "state_dict"
            and (name := dotted_name(one.func.value)) is not None and _OPTIMIZER.search(name.rpartition(".")[2])
        ]  # fmt: skip
        if len(reads) != 1:
            continue
        call, name = reads[0]
        branch = _branch(call, file)
        edits = []
        if branch is not None and not _is_called_by_one(branch, file, context.program):
            edits.append(insert_before(file, branch, f"{name}.consolidate_state_dict(to=0)"))
        yield Proposal(edits=tuple(edits), culprit=culprit_of(file, call, _WHY), belief=2.5, is_origin=True)
        return


def _branch(node: ast.AST, file: SourceFile) -> ast.If | None:
    """The outermost `if` of the function around a node that asks for the rank."""
    found, above = None, file.parents.get(node)
    while above is not None and not isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        if isinstance(above, ast.If) and any(
            asks_for_rank(one) for one in walk(above.test) if isinstance(one, ast.expr)
        ):
            found = above
        above = file.parents.get(above)
    return found


def _is_called_by_one(at: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether the function around a statement is called by one rank alone, as far as its callers tell."""
    function = program.names(file).function_of(at)
    resolver = resolver_of(program)
    for where, call in resolver.calls_of(function, file) if function is not None else ():
        called = resolver.function_of(call, Value(call, where))
        if called is not None and called[1] is function and _branch(call, where) is not None:
            return True
    return False
