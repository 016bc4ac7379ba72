"""Targets that are computed by a function which is to record a graph again: `target = self.scores(x).detach()`.

A function that ran with grad mode off gave targets their values too. With its graph a target would be pulled towards the prediction.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence, Set

from explainer.fix.data.run import modules_run
from explainer.fix.graph.other_view import other_views
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loss.loss import loss_at, unflattened
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, scope_of
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_TARGET = re.compile(
    r"(?:^|_)(?:targets?|teacher|references?|ref|pseudo|soft_?labels?|goal|fixed|old)(?:_|\d|$)", re.IGNORECASE
)
_BOOTSTRAPS = re.compile(r"(?:^|_)(?:gamma|discounts?|rewards?|bootstrap)(?:_|\d|$)", re.IGNORECASE)
_OF_PROBABILITIES = re.compile(r"kl_?div|entropy|bce", re.IGNORECASE)
_HELD = frozenset({"detach", "item", "argmax", "numpy", "tolist"})


def held_targets(function: Function, file: SourceFile, program: Program) -> Iterator[Edit]:
    """An edit for each target that a call of the function gives, where other calls give predictions, and for those it makes itself."""
    yield from targets_among(function.body, function, file, program)
    calls = resolver_of(program).calls_of(function, file)
    held = [(where, one, edit) for where, one in calls if (edit := _held(one, where, program)) is not None]
    if len(held) < len(calls):
        yield from dict.fromkeys(edit for _, _, edit in held)
    if not held:
        yield from other_views(function, file, program)


def targets_among(
    statements: Sequence[ast.stmt], function: Function | None, file: SourceFile, program: Program
) -> Iterator[Edit]:
    """An edit for each target that some statements of a function make: by its name, or by its place in a loss of torch.

    What a module of the function goes on from is a prediction's part as well: it is detached where it is handed out.
    """
    nodes = [node for statement in statements for node in walk(statement)]
    places = list(_places(function, file, program)) if function is not None else []
    fed = {name for name, _ in places if any(_runs_module(name, one, file, program) for one in nodes)}
    held = {name for name, _ in places} - fed
    for one in nodes:
        if isinstance(one, ast.Assign) and (edit := _own(one, held, file, program)) is not None:
            yield edit
    for name, given in dict.fromkeys(places):
        if name in fed and given is not None:
            yield put_method(file, given, ".detach()")


def _runs_module(name: str, node: ast.AST, file: SourceFile, program: Program) -> bool:
    is_read = isinstance(node, ast.Call) and any(
        isinstance(one, ast.Name) and one.id == name for part in node.args for one in walk(part)
    )
    return is_read and isinstance(node, ast.Call) and any(modules_run(node, file, program))


def _own(statement: ast.Assign, held: Set[str], file: SourceFile, program: Program) -> Edit | None:
    """The edit for a target that the function computes beside what it is held against: `target = reward + gamma * v_next`."""
    name = statement.targets[0] if len(statement.targets) == 1 else None
    is_held = isinstance(name, ast.Name) and name.id in held and _is_computed_by_network(statement.value, file, program)
    is_target = isinstance(name, ast.Name) and (_TARGET.search(name.id) is not None or is_held)
    is_target = is_target or (isinstance(name, ast.Name) and _is_bootstrapped(statement))
    is_cut = any(isinstance(one, ast.Attribute) and one.attr in _HELD for one in walk(statement))
    is_computed = isinstance(statement.value, (ast.BinOp, ast.Call))
    return put_method(file, statement.value, ".detach()") if is_target and is_computed and not is_cut else None


def _is_bootstrapped(statement: ast.Assign) -> bool:
    """Whether a sum is what a temporal difference is held against, `reward + gamma * next_value`, by the names in it."""
    value = statement.value
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return False
    read = [getattr(one, "id", getattr(one, "attr", "")) for one in walk(value)]
    return any(_BOOTSTRAPS.search(one) for one in read) and any(isinstance(one, ast.Call) for one in walk(value))


def _is_computed_by_network(value: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a value has a graph, or would have one but for what cuts it: labels have none."""
    trace = provenance_of(program).trace(Value(value, file))
    return trace.live or bool(trace.chains)


def _places(function: Function, file: SourceFile, program: Program) -> Iterator[tuple[str, ast.expr | None]]:
    """The names in a function of what is a target, of a loss in it or where its callers take apart what it returns: there its place too."""
    yield from ((one, None) for one in _targets_in(function, file, program))
    returned = [one.value for one in walk(function) if isinstance(one, ast.Return)]
    parts = returned[0].elts if len(returned) == 1 and isinstance(returned[0], ast.Tuple) else []
    for where, call in resolver_of(program).calls_of(function, file) if parts else ():
        statement = where.statement(call)
        target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
        taken = target.elts if isinstance(target, ast.Tuple) and len(target.elts) == len(parts) else []
        wanted = set(_targets_in(scope_of(statement, where), where, program)) if taken else set()
        for given, name in zip(parts, taken, strict=False):
            is_target = isinstance(name, ast.Name) and (name.id in wanted or _TARGET.search(name.id) is not None)
            if is_target and isinstance(given, ast.Name):
                yield given.id, given


def _targets_in(scope: ast.AST, file: SourceFile, program: Program) -> Iterator[str]:
    """The names that losses of probabilities take as targets and nothing takes as a prediction.

    A distance between two outputs, `mse_loss(a, b)`, may be meant to train both.
    """
    losses = [one for node in walk(scope) if isinstance(node, ast.Call) and (one := loss_at(node, file, program))]
    predicted = {dotted_name(unflattened(one.prediction)) for one in losses}
    for one in (each for each in losses if _OF_PROBABILITIES.search(each.name)):
        name = dotted_name(unflattened(one.target))
        if name is not None and name not in predicted:
            yield name


def _held(call: ast.Call, file: SourceFile, program: Program) -> Edit | None:
    """The edit for what a call gives where that is a target: by the name that it gets, or as the target of `kl_div`."""
    statement = file.statement(call)
    if any(isinstance(one, ast.Attribute) and one.attr in _HELD for one in walk(statement)):
        return None
    around = program.names(file).function_of(call)
    if around is not None and _TARGET.search(around.name):  # `values = critic.values(obs)` of `nstep_targets`
        return put_method(file, call, ".detach()")
    name = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    is_target = isinstance(name, ast.Name) and _TARGET.search(name.id) is not None
    if isinstance(statement, ast.Assign) and (is_target or (name is not None and _is_bootstrapped(statement))):
        return put_method(file, statement.value, ".detach()")
    for one in walk(statement):
        loss = loss_at(one, file, program) if isinstance(one, ast.Call) else None
        if (
            loss is not None
            and loss.name in ("kl_div", "KLDivLoss")
            and any(part is call for part in walk(loss.target))
        ):
            return put_method(file, loss.target, ".detach()")
    return None
