"""What a data set keeps is computed without a graph: `with torch.no_grad():` round `self.features = encoder(clips)`.

A data set whose rows were computed once, with grad mode on, keeps their graph. No worker can be sent it, and without workers the
second batch goes back through what the first one's backward has freed. Where nothing trains the module that computes the rows,
they are data: the statement that runs it goes under `no_grad`; where it runs later than it is written, and where its function hands out
what it computes by `yield`, the result is detached. Of a module that something trains only the line is named.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.data.run import Run, runs_behind
from explainer.fix.text.rewrite import put_method, under_no_grad
from explainer.model.patch import Edit
from explainer.source.data.kept import is_data_set, kept_values
from explainer.source.data.loader import find_loaders, worked_by
from explainer.source.file import SourceFile
from explainer.source.loop.repeated import run_in_steps
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, walk_scope
from explainer.source.value.resolve import resolver_of

_SENT = "refusing to serialize non-leaf tensor"
_COLLATED = (
    "arguments don't support automatic differentiation"  # the rows of a worker are put together in shared memory
)
_AGAIN = {"a second time": "the first backward uses up", "support the deepcopy protocol": "cannot be copied"}
_LOADS = "torch/utils/data/"
_SENDS = frozenset(
    {"map", "imap", "imap_unordered", "starmap", "apply", "map_async", "starmap_async", "apply_async", "submit"}
    | {"spawn", "start_processes", "Process"}
)  # fmt: skip
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
# What takes a generator without going through it.
_LAZY = frozenset({"map", "filter", "zip", "enumerate", "iter", "chain", "islice"})
_WHY = "computes what is kept as data with its graph, which {}"
_TRAINED = "keeps the graph of a module that is trained, which {}"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all that data sets keep, and what is handed to a process, with the graph of modules that nothing trains."""
    message = message_of(context)
    is_sent = _SENT in message or (_COLLATED in message and _is_in_loader(context))
    if not is_sent and not any(one in message for one in _AGAIN):
        return
    program = context.program
    values = [*kept_values(program), *(_rows(program) if is_sent else ()), *(_handed(context) if is_sent else ())]
    runs: dict[ast.Call, Run] = {}
    for value in values:
        for run in runs_behind(value, program) or ():
            runs.setdefault(run.call, run)
    refused = "cannot be sent to a worker" if is_sent else next(_AGAIN[one] for one in _AGAIN if one in message)
    yield from _proposals(list(runs.values()), refused, program)


def _proposals(runs: Sequence[Run], refused: str, program: Program) -> Iterator[Proposal]:
    trained = [one for one in runs if one.is_trained(program) or not _is_for_data(one, program)]
    for one in trained:
        yield Proposal(edits=(), culprit=culprit_of(one.file, one.call, _TRAINED.format(refused)), belief=1.0)
    edits = _edits(runs, program) if not trained else ()
    if edits:
        yield Proposal(
            edits=edits,
            culprit=culprit_of(runs[0].file, runs[0].call, _WHY.format(refused)),
            belief=2.4,
            is_origin=True,
        )


def _is_in_loader(context: Context) -> bool:
    return any(
        _LOADS in frame.file.replace("\\", "/") for record in context.incident.exceptions for frame in record.frames
    )


def _rows(program: Program) -> Iterator[Value]:
    """What the workers of loaders make: the rows of data sets, and batches of them."""
    for loader in find_loaders(program):
        for one in worked_by(loader, program):
            for part in walk_scope(one.function):
                if isinstance(part, (ast.Return, ast.Yield)) and part.value is not None:
                    yield Value(part.value, one.file)


def _handed(context: Context) -> Iterator[Value]:
    """What the failing line, or the process that it starts, is handed."""
    started: list[tuple[SourceFile, ast.Call]] = []
    for file, statement in failing_statements(context):
        calls = [one for one in walk(statement) if isinstance(one, ast.Call)]
        if any(isinstance(one.func, ast.Attribute) and one.func.attr == "start" for one in calls):
            started += resolver_of(context.program).calls_named("Process")
        started += [(file, one) for one in calls if getattr(one.func, "attr", getattr(one.func, "id", "")) in _SENDS]
    for file, call in started:
        for given in (*call.args, *(one.value for one in call.keywords)):
            yield from (Value(one, file) for one in (given.elts if isinstance(given, ast.Tuple) else [given]))


def _is_for_data(run: Run, program: Program) -> bool:
    """Whether a run serves nothing but data: it stands in a data set, or in no function that a training step calls."""
    owner = program.names(run.file).class_of(run.call)
    if owner is not None and is_data_set(owner, run.file, program):
        return True
    return program.names(run.file).function_of(run.call) not in run_in_steps(program)


def _edits(runs: Sequence[Run], program: Program) -> tuple[Edit, ...]:
    """The edits that keep all runs from recording; none where one of them cannot be reached."""
    edits: list[tuple[Edit, ...]] = []
    statements: dict[ast.stmt, SourceFile] = {}
    for one in runs:
        statement = one.file.statement(one.call)
        if isinstance(statement, _SIMPLE) and not _is_later(one.call, statement, one.file):
            statements[statement] = one.file
        else:
            edits.append((put_method(one.file, _whole(one), ".detach()"),))
    edits += [under_no_grad(statements[row[0]], row, program.names(statements[row[0]])) for row in _rows_of(statements)]
    return tuple(edit for each in edits for edit in each) if all(edits) else ()


def _is_later(call: ast.Call, statement: ast.stmt, file: SourceFile) -> bool:
    """Whether a call runs when its statement is over, or its statement hands something out while a block round it would be open."""
    if any(isinstance(one, (ast.Yield, ast.YieldFrom, ast.Await)) for one in walk(statement)):
        return True
    node: ast.AST = call
    while node is not statement:
        above = file.parents[node]
        is_gone_through = isinstance(above, ast.Call) and getattr(above.func, "id", "") not in _LAZY
        if isinstance(node, ast.Lambda) or (isinstance(node, ast.GeneratorExp) and not is_gone_through):
            return True
        node = above
    return False


def _whole(run: Run) -> ast.expr:
    """A run with what is taken of its result at once: `model(x).last_hidden_state[:, 0]`."""
    node: ast.expr = run.call
    while True:
        above = run.file.parents.get(node)
        is_taken = isinstance(above, (ast.Attribute, ast.Subscript)) and above.value is node
        is_method = isinstance(above, ast.Call) and above.func is node
        if not (is_taken or is_method) or not isinstance(above, ast.expr):
            return node
        node = above


def _rows_of(statements: Mapping[ast.stmt, SourceFile]) -> list[list[ast.stmt]]:
    """Statements in rows of those that follow each other."""
    rows: list[list[ast.stmt]] = []
    for one in sorted(statements, key=lambda each: (statements[each].path, each.lineno)):
        last = rows[-1][-1] if rows else None
        if last is not None and statements[last] is statements[one] and _follows(one, last, statements[one]):
            rows[-1].append(one)
        else:
            rows.append([one])
    return rows


def _follows(one: ast.stmt, last: ast.stmt, file: SourceFile) -> bool:
    above = file.parents.get(one)
    blocks = (getattr(above, name, None) for name in ("body", "orelse", "finalbody"))
    block = next((each for each in blocks if isinstance(each, list) and one in each), [])
    return last in block and block.index(one) == block.index(last) + 1
