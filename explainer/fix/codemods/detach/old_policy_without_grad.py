"""What a rollout collects of the policy is a constant of several epochs of updates: the policy acts under `no_grad`.

`ratio = exp(new - old)` computes `new` in each round; `old` comes from the function that acted, with its graph, which the
first backward frees. The function gets `@torch.no_grad()`; its call, where a loss runs it as well, or the loop that acts line
by line, the block. Only where each layer that acts is run anew for the loss; where the log-probabilities of the rollout are
the loss themselves there is no ratio.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.fix.text.rewrite import put_method, spell, under_no_grad
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.loop.backward import find_backwards
from explainer.source.name import Function, dotted_name
from explainer.source.network.policy import Ratio, find_ratios, functions_run, layers_of, takes_log_probability
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.callee import callees_of
from explainer.source.value.lineage import (
    CUTS,
    before,
    binds,
    changes,
    definitions,
    lineage,
    reads,
    scope_of,
    sources,
    statements_of,
    value_of,
)
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_SIGNS = ("modified by an inplace operation", "a second time")
_NEEDS_GRAD = frozenset({"backward", "manual_backward", "enable_grad", "set_grad_enabled", "requires_grad_", "grad"})
_SUSPENDS = (ast.Yield, ast.YieldFrom, ast.Await)
_DETACHED = "Detach the old policy's values: they are constants of the updates"
_WHY = "records the graph of the policy that acts, which the first of several updates frees"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each function, or call, that acts and collects log-probabilities for updates of several epochs."""
    if not any(sign in one.message for one in context.incident.exceptions for sign in _SIGNS):
        return
    program = context.program
    ratios = find_ratios(program)
    if not ratios or not _all_run_forwards(ratios, program):
        return
    updated = frozenset[ast.AST]().union(*(functions_run(one.region, one.file, program) for one in ratios))
    layers = frozenset[ast.AST]().union(
        *(layers_of(line, one.file, program) for one in ratios for line in one.forwards)
    )
    acting = list(_acting(updated, layers, program))
    run = frozenset[ast.AST]().union(*(functions_run(one, file, program) - {one} for file, one in acting))
    found = [one for one in acting if one[1] not in run]  # the outermost: what it calls acts under it
    for file, function in found:
        spelled = spell(program.names(file), "torch.no_grad")
        if spelled.partition(".")[0] in program.names(file).imports:
            edits = (insert_before(file, function, f"@{spelled}()"),)
            culprit = culprit_of(file, _forward_of(function, file, program), _WHY)
            yield Proposal(edits=edits, culprit=culprit, belief=2.5)
    if found:
        return
    calls = list(_calls(ratios, layers, program))
    yield from calls or list(_loops(ratios, layers, program)) or _lines(ratios, layers, program)


def _all_run_forwards(ratios: tuple[Ratio, ...], program: Program) -> bool:
    """Whether every backward of the program goes through a forward of its own beside a ratio, of which no part is left out."""
    scopes = {scope_of(one.backward.statement, one.file, program) for one in ratios}
    regions = {one.region: set(walk(one.region)) for one in ratios}
    for one in find_backwards(program):
        if scope_of(one.statement, one.file, program) not in scopes:
            return False
        inside = next((nodes for nodes in regions.values() if one.call in nodes), None)
        lines = lineage(one.loss, one.statement, one.file, program)
        fresh = [line for line in lines if inside is not None and line in inside]
        at_once = layers_of(one.loss, one.file, program)
        if not at_once and not any(layers_of(line, one.file, program) for line in fresh):
            return False
    return not any(_leaves_out(line, *place, program) for one in ratios for place in _places(one) for line in place[2])


def _places(ratio: Ratio) -> Iterator[tuple[SourceFile, ast.AST, tuple[ast.stmt, ...]]]:
    """Where forwards of a ratio stand, and the statements there that may read what they give."""
    yield ratio.file, ratio.region, (*ratio.forwards, ratio.backward.statement)
    if ratio.inner is not None:
        file, function = ratio.inner
        yield file, function, statements_of(function)


def _leaves_out(
    line: ast.stmt, file: SourceFile, region: ast.AST, readers: tuple[ast.stmt, ...], program: Program
) -> bool:
    """Whether a forward's results are used in part: what the loss takes of the rest may be the rollout's own."""
    names = {name for one in readers for name in reads(one)}
    for call in (node for node in walk(line) if isinstance(node, ast.Call) and layers_of(node, file, program)):
        above = file.parents.get(call)
        if isinstance(above, ast.Subscript) and isinstance(above.slice, ast.Constant):
            return True
        if isinstance(above, ast.Attribute) and not isinstance(file.parents.get(above), ast.Call):
            return True
        target = above.targets[0] if isinstance(above, ast.Assign) else None
        if isinstance(target, ast.Name) and _is_read_in_part(target.id, file, region):
            return True
        for at, one in enumerate(target.elts if isinstance(target, (ast.Tuple, ast.List)) else ()):
            is_read = (dotted_name(one) or "") in names
            is_live = not is_read and provenance_of(program).trace(Value(call, file, pick=at)).live
            if is_live and _computes(call, at, file, program):
                return True
    return False


def _computes(call: ast.Call, at: int, file: SourceFile, program: Program) -> bool:
    """Whether a function makes one of its results with layers, rather than giving back what it was given; so where none is known."""
    target = resolver_of(program).function_of(call, Value(call, file))
    given = [one for one in walk(target[1]) if isinstance(one, ast.Return)] if target is not None else []
    if target is None or not given or not all(isinstance(one.value, ast.Tuple) for one in given):
        return True
    parts = [
        (one.value.elts[at], one) for one in given if isinstance(one.value, ast.Tuple) and at < len(one.value.elts)
    ]
    lines = [
        line for part, one in parts for line in (part, *(value for _, value in sources(part, one, target[0], program)))
    ]
    return len(parts) < len(given) or any(layers_of(one, target[0], program) for one in lines)


def _is_read_in_part(name: str, file: SourceFile, region: ast.AST) -> bool:
    """Whether attributes or entries of a result are read, rather than the result or its methods."""
    for node in walk(region):
        above = file.parents.get(node)
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        if isinstance(above, ast.Attribute) and not isinstance(file.parents.get(above), ast.Call):
            return True
        if isinstance(above, ast.Subscript) and above.value is node and isinstance(above.slice, ast.Constant):
            return True
    return False


def _acting(
    updated: frozenset[ast.AST], layers: frozenset[ast.AST], program: Program
) -> Iterator[tuple[SourceFile, Function]]:
    """The functions that act: they run only layers that the updates run anew, take log-probabilities, and go back nowhere."""
    for file, function in program.functions():
        if function in updated or is_without_grad(function, file, program) or _needs_grad(function, file, program):
            continue
        own = layers_of(function, file, program)
        is_rollout = own and own <= layers and takes_log_probability(function, file, program)
        if is_rollout and _hands_on(function, file, program):
            yield file, function


def _needs_grad(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether a piece of code, or what it runs, differentiates, switches grad mode or suspends."""
    return any(
        isinstance(one, _SUSPENDS) or (isinstance(one, ast.Attribute) and one.attr in _NEEDS_GRAD)
        for each in (node, *functions_run(node, file, program))
        for one in walk(each)
    )


def _hands_on(function: Function, file: SourceFile, program: Program) -> bool:
    """Whether a function records a graph, gives it away, and a caller under grad mode takes it: not all of it is detached."""
    if not _gives_graph(statements_of(function), file, program):
        return False
    calls = resolver_of(program).calls_of(function, file)
    return any(not is_without_grad(call, where, program) and _is_taken(call, where, program) for where, call in calls)


def _gives_graph(statements: Iterable[ast.stmt], file: SourceFile, program: Program) -> bool:
    """Whether statements that run layers return, store or append what has a graph."""
    lines = [one for one in statements if not is_without_grad(one, file, program)]
    names: set[str] = set()
    for _ in range(2):  # the second time for what a loop carries back
        for one in lines:
            value = value_of(one)
            if value is not None and (reads(value) & names or layers_of(value, file, program)):
                names |= binds(one) | changes(one)
    given = [one for one in lines if isinstance(one, (ast.Return, ast.Expr)) or _is_stored(one)]
    values = [one.value for one in given if one.value is not None]  # type: ignore[attr-defined]
    return any(_runs_uncut(one, file, program) or reads(one) & names for one in values)


def _is_stored(statement: ast.stmt) -> bool:
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return isinstance(target, (ast.Subscript, ast.Attribute))


def _runs_uncut(value: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether an expression runs layers and hands on their graph."""
    is_cut = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in CUTS
    return not is_cut and bool(layers_of(value, file, program))


def _is_taken(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether something of what a call gives back is read other than detached; an expression that is used at once is."""
    statement = file.statement(call)
    if not isinstance(statement, ast.Assign) or statement.value is not call:
        return not isinstance(statement, ast.Assign) or _runs_uncut(statement.value, file, program)
    target = statement.targets[0]
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    trace = provenance_of(program).trace
    live = [one for at, one in enumerate(parts) if trace(Value(call, file, pick=at)).live] or parts
    names = {name for one in live if (name := dotted_name(one))}
    scope = scope_of(statement, file, program)
    rest = [one for one in statements_of(scope) if one is not statement] if scope is not None else []
    return any(
        reads(value) & names for one in rest
        if (value := value_of(one) if not isinstance(one, ast.Return) else one.value) is not None
    )  # fmt: skip


def _forward_of(function: ast.AST, file: SourceFile, program: Program) -> ast.stmt:
    """The first statement of a function or loop that runs the policy."""
    calls = [one for one in walk(function) if isinstance(one, ast.Call) and layers_of(one, file, program)]
    return file.statement(min(calls, key=lambda one: one.lineno))


def _calls(ratios: tuple[Ratio, ...], layers: frozenset[ast.AST], program: Program) -> Iterator[Proposal]:
    """The statements outside of the updates that act by a function which the updates run as well."""
    inside = {node for one in ratios for node in walk(one.region)}
    shared = frozenset[ast.AST]().union(*(functions_run(one.region, one.file, program) for one in ratios))
    for file in program.parsed():
        for statement in (node for node in file.walk() if isinstance(node, ast.Assign)):
            around = program.names(file).function_of(statement)
            if statement in inside or around in shared or not isinstance(statement.value, ast.Call):
                continue
            run = functions_run(statement.value, file, program)
            own = layers_of(statement.value, file, program)
            if not run & shared or not own or not own <= layers or is_without_grad(statement, file, program):
                continue
            if not _is_taken(statement.value, file, program) or not _hands_out(statement.value, file, program):
                continue
            if not takes_log_probability(statement.value, file, program) or _needs_grad(statement.value, file, program):
                continue
            edits = under_no_grad(file, [statement], program.names(file))
            if edits:
                where = _recorded_in(statement.value, file, program) or (file, statement)
                yield Proposal(edits=edits, culprit=culprit_of(*where, _WHY), belief=2.5)


def _hands_out(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether a function that is called gives a graph away, as far as it is known which one is."""
    found = [one for one in callees_of(call.func, file, program) if isinstance(one.function, ast.FunctionDef)]
    return not found or any(
        not is_without_grad(one.function, one.file, program)
        and _gives_graph(statements_of(one.function), one.file, program)
        for one in found
        if isinstance(one.function, ast.FunctionDef)
    )


def _recorded_in(call: ast.Call, file: SourceFile, program: Program) -> tuple[SourceFile, ast.stmt] | None:
    """The statement of a called function that takes log-probabilities of layers with their graph."""
    for one in callees_of(call.func, file, program):
        inside = statements_of(one.function) if isinstance(one.function, ast.FunctionDef) else []
        for statement in inside:
            value = value_of(statement)
            if value is None or is_without_grad(statement, one.file, program):
                continue
            if layers_of(value, one.file, program) and takes_log_probability(value, one.file, program):
                return one.file, statement
    return None


def _loops(ratios: tuple[Ratio, ...], layers: frozenset[ast.AST], program: Program) -> Iterator[Proposal]:
    """The loops beside the updates that act line by line."""
    for ratio in ratios[:1]:
        file, scope = ratio.file, scope_of(ratio.backward.statement, ratio.file, program)
        earlier = [one for one in statements_of(scope) if before(one, ratio.backward.statement)] if scope else []
        for loop in (one for one in earlier if isinstance(one, (ast.For, ast.While))):
            own = layers_of(loop, file, program)
            if not own or not own <= layers or is_without_grad(loop, file, program) or _needs_grad(loop, file, program):
                continue
            inner = [one for one in walk(loop) if isinstance(one, ast.stmt) and one is not loop]
            if takes_log_probability(loop, file, program) and _gives_graph(inner, file, program):
                edits = under_no_grad(file, [loop], program.names(file))
                culprit = culprit_of(file, _forward_of(loop, file, program), _WHY)
                yield Proposal(edits=edits, culprit=culprit, belief=2.5)
                return


def _lines(ratios: tuple[Ratio, ...], layers: frozenset[ast.AST], program: Program) -> Iterator[Proposal]:
    """The lines before the updates whose values these read with their graph, where the policy acts on all states at once."""
    ratio = ratios[0]
    file, inside = ratio.file, set(walk(ratio.region))
    made = lineage(ratio.backward.loss, ratio.backward.statement, file, program)
    scope = scope_of(ratio.backward.statement, file, program)
    readers = (*ratio.forwards, ratio.backward.statement) if scope is not None else ()
    taken = {made for one in readers for name in reads(one) for made in definitions(name, one, scope)}  # type: ignore[arg-type]
    earlier = [one for one in made if one not in inside and before(one, ratio.backward.statement)]
    given = [one for one in earlier if isinstance(one, ast.Assign) and one in taken]
    live = [one for one in given if provenance_of(program).trace(Value(one.value, file)).live]
    is_plain = all(isinstance(one.targets[0], ast.Name) and not _makes_part(one, file, program) for one in live)
    old = dotted_name(ratio.old)
    if (
        is_plain
        and any(old in binds(one) for one in live)
        and all(_is_of_layers(one, layers, file, program) for one in live)
    ):
        guilty = next(one for one in live if old in binds(one))
        edits = tuple(put_method(file, one.value, ".detach()") for one in live)
        risk = "unsafe" if len(live) > 1 else None
        culprit = culprit_of(file, guilty, _WHY)
        yield Proposal(edits=edits, culprit=culprit, belief=2.3, applicability=risk, title=_DETACHED)


def _is_of_layers(statement: ast.Assign, layers: frozenset[ast.AST], file: SourceFile, program: Program) -> bool:
    """Whether a value is computed by layers that the updates run anew; one of a parameter alone may be there to be trained."""
    lines = [statement, *lineage(statement.value, statement, file, program)]
    run = frozenset[ast.AST]().union(*(layers_of(one, file, program) for one in lines))
    return bool(run) and run <= layers


def _makes_part(statement: ast.Assign, file: SourceFile, program: Program) -> bool:
    """Whether a statement makes a module, a parameter or a leaf, which trains as it is."""
    called = program.names(file).qualified(getattr(statement.value, "func", None)) or ""
    if called.startswith(("torch.nn.", "torch.optim.")) or program.find_class(called) is not None:
        return True
    keywords = getattr(statement.value, "keywords", ())
    return any(one.arg == "requires_grad" for one in keywords) or called.endswith("requires_grad_")
