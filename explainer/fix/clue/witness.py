"""Evidence that the program's source gives for or against a cause: the readers that rules name with `reads = "source"`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from explainer.fix.clue.crash import is_crash
from explainer.fix.clue.failure import backward_roots
from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, culprit_of
from explainer.model.finding import Culprit, Evidence
from explainer.model.rule import Cause
from explainer.model.trace import WRITE
from explainer.source.data.column import arguments_calls, drops
from explainer.source.graph.cut import INTEGER, SAMPLE, STEP
from explainer.source.graph.write import find_writes
from explainer.source.loop.backward import Backward, find_backwards, stepped
from explainer.source.loop.carried import find_carried
from explainer.source.loop.common_step import climbs
from explainer.source.loop.recurrence import find_recurrent_writes
from explainer.source.loop.repeated import run_in_steps
from explainer.source.name import dotted_name
from explainer.source.network.follower import followers
from explainer.source.network.merge import find_merges
from explainer.source.network.own_weight import rewritten_in_forward
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, dominates, scope_of
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.lineage import before, loops_of, reads, sources, statements_of
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_LOOKED_FOR = ("retain_graph", "post_accumulate_grad_hook", "register_hook", "create_graph", "threading")
_HARMLESS = frozenset(
    {"zero_grad", "append", "print", "set_postfix", "info", "debug", "set_description", "train", "write"}
)
_COUNTS = frozenset({INTEGER, STEP, SAMPLE})
_WEIGHT_WRITES = frozenset({"load_state_dict", "update_parameters", "step", "vector_to_parameters", "sync_params"})


def witnessed(cause: Cause, context: Context) -> Iterator[Evidence]:
    """What the readers of a cause's rules see in the program."""
    for rule in cause.evidence:
        reader = READERS.get(str(rule.conditions.get("reader"))) if rule.reads == "source" else None
        place = reader(context) if reader is not None and not context.program.faults else None
        if place is not None:
            name = f"{place.file.rpartition('/')[2]}:{place.line}"
            yield Evidence(
                id=rule.id,
                reads="source",
                says=rule.says.format(place=name),
                weight=rule.weight,
                file=place.file,
                line=place.line,
            )


def _moved_by_a_climb(context: Context) -> Culprit | None:
    """The traced write of what takes the first of two steps, which the program calls as such."""
    resolver = resolver_of(context.program)
    for _, file, statement in traced_statements(WRITE, context):
        function = context.program.names(file).function_of(statement)
        calls = resolver.calls_of(function, file) if function is not None else []
        if any(climbs(where.statement(call)) for where, call in calls):
            return culprit_of(file, statement, "moves the weights for the second gradient")
    return None


def _rewrites_own_weights(context: Context) -> Culprit | None:
    """The first write of a weight, without grad, in the forward of its own module."""
    found = next(iter(rewritten_in_forward(context.program)), None)
    return culprit_of(*found, "writes a weight in its own forward") if found is not None else None


def _follows_another(context: Context) -> Culprit | None:
    """The traced write that gives a network's weights those of another one, as an average or a copy."""
    for _, file, statement in traced_statements(WRITE, context):
        if next(iter(followers(statement, file, context.program)), None) is not None:
            return culprit_of(file, statement, "makes weights follow another network's")
    return None


def _step_behind_backward(context: Context) -> Culprit | None:
    """The backward that failed, where it is the program's only one, of a loss made in its own round, with all steps behind it."""
    program = context.program
    found = find_backwards(program)
    if len(found) != 1 or any(word in file.text for file in program.parsed() for word in _LOOKED_FOR):
        return None
    (one,) = found
    if not is_crash(one.file, one.call, context) or next(iter(find_carried(program)), None) is not None:
        return None
    loops = list(loops_of(one.statement, one.file))
    scope = scope_of(one.call, one.file)
    around = loops[0] if loops else scope
    if (
        around is None
        or _is_carried(one, loops, program)
        or not _is_made_inside(one, around, program)
        or _may_move_weights(one, around, program)
    ):
        return None
    return culprit_of(one.file, one.call, "is the only backward")


def _is_made_inside(one: Backward, around: ast.AST, program: Program) -> bool:
    """Whether nothing with a graph comes into the round, or the function, from outside of it."""
    flow = flow_of(program)
    inside = {id(each) for each in walk(around) if each is not around}
    for statement, value in sources(one.loss, one.statement, one.file, program):
        if (
            id(statement) not in inside
            and not _is_made_of_class(value)
            and flow.reach_of(value, one.file) != Reach.NONE
        ):
            return False
    if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
        called = {id(each.func) for each in walk(around) if isinstance(each, ast.Call)}
        names = {each.arg for each in (*around.args.posonlyargs, *around.args.args, *around.args.kwonlyargs)} - {"self"}
        for each in walk(around):
            is_given = isinstance(each, ast.Name) and each.id in names and id(each) not in called
            if is_given and isinstance(each, ast.Name) and flow.reach_of(each, one.file) == Reach.SURE:
                return False
    return True


def _is_carried(one: Backward, loops: Sequence[ast.AST], program: Program) -> bool:
    """Whether a value with a graph comes from an earlier round, or call, into the loss."""
    flow = flow_of(program)
    for statement, value in sources(one.loss, one.statement, one.file, program):
        for loop in loops:
            for bound in bounds_of(scope_of(statement, one.file)):
                is_later = _is_inside(bound.statement, loop) and not _is_made_before(bound.name, statement, loop, one)
                if bound.name in reads(value) and is_later and flow.reach_of(bound.node, one.file) != Reach.NONE:
                    return True
    kept = (each for function in run_in_steps(program) for each in walk(function) if isinstance(each, ast.Assign))
    return any((dotted_name(each.targets[0]) or "").startswith("self.") and _has_graph(each, program) for each in kept)


def _has_graph(statement: ast.Assign, program: Program) -> bool:
    file = next((each for each in program.parsed() if each.parents.get(statement) is not None), None)
    return file is not None and flow_of(program).reach_of(statement.value, file) != Reach.NONE


def _is_inside(node: ast.AST, loop: ast.AST) -> bool:
    return node is not loop and any(each is node for each in walk(loop))


def _is_made_before(name: str, statement: ast.stmt, loop: ast.AST, one: Backward) -> bool:
    """Whether each round binds the name anew before the statement reads it."""
    bounds = [each for each in bounds_of(scope_of(statement, one.file)) if each.name == name and not each.fills]
    return any(
        each.statement is loop
        or (
            _is_inside(each.statement, loop)
            and isinstance(each.statement, ast.stmt)
            and before(each.statement, statement)
            and dominates(each.statement, statement, one.file)
        )
        for each in bounds
    )


def _is_made_of_class(value: ast.expr) -> bool:
    """`Net(...)`, `Net(...).to(device)`: a module, whose weights are no part of a graph yet."""
    while isinstance(value, ast.Call):
        func = value.func
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        if name[:1].isupper():
            return True
        value = func.value if isinstance(func, ast.Attribute) else func
    return False


def _may_move_weights(one: Backward, around: ast.AST, program: Program) -> bool:
    """Whether something before the backward of a round, or in what it calls, may write a weight."""
    scope = scope_of(one.call, one.file)
    inside = {id(each) for each in walk(around) if each is not around}
    for statement in statements_of(scope) if scope is not None else ():
        if id(statement) not in inside or not before(statement, one.statement):
            continue
        if stepped(statement) or (isinstance(statement, ast.Expr) and not _is_harmless(statement.value)):
            return True
        if any(_writes_weights(each) for each in walk(statement)):
            return True
    return any(
        _writes_weights(each) for function in run_in_steps(program) if function is not scope for each in walk(function)
    )


def _is_harmless(value: ast.expr) -> bool:
    func = value.func if isinstance(value, ast.Call) else None
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    return isinstance(value, ast.Constant) or name in _HARMLESS


def _writes_weights(node: ast.AST) -> bool:
    """A call that moves weights, or a loop over parameters that writes in place."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        is_own = isinstance(node.func, ast.Attribute) and dotted_name(node.func.value) == "self"
        return name in _WEIGHT_WRITES and not is_own  # a method of the same object is read where it stands
    if not isinstance(node, ast.For):
        return False
    parts = {each.attr for each in walk(node.iter) if isinstance(each, ast.Attribute)}
    return bool(parts & {"parameters", "named_parameters", "state_dict", "values"}) and any(
        isinstance(each, ast.AugAssign)
        or (isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr.endswith("_"))
        for each in walk(node)
    )


def _merged_while_training(context: Context) -> Culprit | None:
    """The first merge of an adapter into a model that is trained after it."""
    found = next(iter(find_merges(context.program)), None)
    return culprit_of(found.file, found.call, "merges the adapter") if found is not None else None


def _written_over_time(context: Context) -> Culprit | None:
    """The write of a state that a loop over time hands on: the traced one, or where no other write can be what failed."""
    found = find_recurrent_writes(context.program)
    traced = {id(statement) for _, _, statement in traced_statements(WRITE, context)}
    if traced:
        found = tuple(one for one in found if id(one.file.statement(one.node)) in traced)
    elif any(one.is_needed and one not in found for one in find_writes(context.program)):
        return None
    return culprit_of(found[0].file, found[0].node, "overwrites the state of the round before") if found else None


def _counts_on_the_way(context: Context) -> Culprit | None:
    """The operation without a gradient that ends the failing loss's graph, where nothing else ends it on any way."""
    traces = [provenance_of(context.program).trace(one) for one in backward_roots(context)]
    chains = [chain for one in traces for chain in one.chains]
    if not chains or any(one.live for one in traces) or any(cut.kind not in _COUNTS for one in chains for cut in one):
        return None
    first = chains[0][0]
    return culprit_of(first.file, first.node, "counts, selects or samples, which leaves no graph")


def _drops_column(context: Context) -> Culprit | None:
    """The options of the Trainer that drops the column which the failure misses."""
    return _options_where(context, is_dropped=True)


def _keeps_column(context: Context) -> Culprit | None:
    """The options of a Trainer that did not drop what the failure misses: the forward takes it, or no row has it."""
    return _options_where(context, is_dropped=False)


def _options_where(context: Context, *, is_dropped: bool) -> Culprit | None:
    column = str(context.fields.get("column") or "")
    if not column or drops(column, context.program) is not is_dropped:
        return None
    found = next(arguments_calls(context.program), None)
    return culprit_of(*found, "are the options of the Trainer") if found is not None else None


READERS: dict[str, Callable[[Context], Culprit | None]] = {
    "step-behind-backward": _step_behind_backward,
    "merged-while-training": _merged_while_training,
    "written-over-time": _written_over_time,
    "follows-another": _follows_another,
    "moved-by-a-climb": _moved_by_a_climb,
    "counts-on-the-way": _counts_on_the_way,
    "rewrites-own-weights": _rewrites_own_weights,
    "drops-the-column": _drops_column,
    "keeps-the-column": _keeps_column,
}
