"""Keeps the shared graph where each of several losses is differentiated by itself: `retain_graph=True`.

Gradient surgery, GradNorm and per-task statistics need the gradient of one loss at a time, so the losses cannot be added. The
call stands in a loop over losses that one forward made, or is reached from one through a function that is given the loss.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.argument import add_keyword
from explainer.source.file import SourceFile
from explainer.source.loop.backward import loss_of
from explainer.source.loop.pair import graph_lines
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import children, walk
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import before, binds, block_of, reads, scope_of, statements_of

_GRAD = "torch.autograd.grad"
_LOOPS = (ast.For, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_HANDS_OUT = frozenset({"values", "items", "enumerate", "zip", "reversed", "list", "tuple", "tqdm"})
_BECAUSE = (
    "the graph of the shared part is held until the last loss; each call still gives the gradient of one loss alone"
)
_STEPPED = "goes back through one graph loss by loss, and steps between: the first backward has freed it"
_IF_ONE_STEP = (
    "right where all these losses come from one forward; a loss that is kept from an earlier step needs another cure"
)
_DEPTH = 3


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the call that failed, where it goes through one graph loss by loss."""
    if not context.has_failed:
        return
    places = failing_statements(context)
    if not places:
        return
    file, statement = places[0]
    names = context.program.names(file)
    for call, loss in _calls(statement, file, context.program):
        if _keeps(call):
            continue
        earlier = list(_earlier(call, loss, statement, file, context.program))
        loop = None if earlier else _handing_loop(loss, call, places, context.program)
        turn = next((place for place in places if isinstance(loop, ast.For) and _is_inside(place, loop)), None)
        if turn is not None and isinstance(loop, ast.For) and _writes(loop.body):
            yield Proposal(edits=(), culprit=culprit_of(*turn, _STEPPED), belief=2.0)
            continue
        if not earlier and (loop is None or _writes(getattr(loop, "body", ()))):
            continue
        if not names.is_call(call, _GRAD) and not _is_read_alone(call, file):
            continue
        is_first_step = any(one.name == "live_steps" and one.value == "0" for one in context.incident.facts)
        yield Proposal(
            edits=tuple(add_keyword(file, one, "retain_graph=True") for one in earlier or [call]),
            culprit=culprit_of(file, (earlier or [call])[0], "frees the graph that the next loss goes through too"),
            belief=2.0,
            applicability=None if is_first_step else "unsafe",
            because=_BECAUSE if is_first_step else _IF_ONE_STEP,
        )


def _is_inside(place: tuple[SourceFile, ast.stmt], loop: ast.For) -> bool:
    file, above = place[0], place[0].parents.get(place[1])
    while above is not None and above is not loop:
        above = file.parents.get(above)
    return above is loop


def _calls(statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls of a statement that differentiate, with what they differentiate."""
    for node in _shallow(statement):
        if not isinstance(node, ast.Call):
            continue
        if program.names(file).is_call(node, _GRAD):
            given = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "outputs")]
            loss = given[0] if given else None
        else:
            loss = loss_of(node, file, program)
        if loss is not None:
            yield node, loss


def _shallow(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement without those of the statements in it."""
    queue: list[ast.AST] = [statement]
    while queue:
        node = queue.pop()
        yield node
        queue.extend(one for one in children(node) if not isinstance(one, ast.stmt))


def _keeps(call: ast.Call) -> bool:
    return any(
        one.arg in ("retain_graph", "create_graph")
        and not (isinstance(one.value, ast.Constant) and not one.value.value)
        for one in call.keywords
    )


def _earlier(
    call: ast.Call, loss: ast.expr, statement: ast.stmt, file: SourceFile, program: Program
) -> Iterator[ast.Call]:
    """The `grad` calls before the failing one in its block that go through the same lines and keep nothing."""
    names, block = program.names(file), list(block_of(statement, file))
    if not names.is_call(call, _GRAD) or statement not in block:
        return
    lines = set(graph_lines(loss, statement, file, program))
    for one in block[: block.index(statement)]:
        if _writes([one]):
            return
        for other, what in _calls(one, file, program):
            shared = lines & set(graph_lines(what, one, file, program))
            if names.is_call(other, _GRAD) and not _keeps(other) and (shared or reads(what) & reads(loss)):
                yield other


Places = list[tuple[SourceFile, ast.stmt]]


def _handing_loop(loss: ast.expr, at: ast.AST, places: Places, program: Program, depth: int = 0) -> ast.AST | None:
    """The loop that hands out the loss, here or where the function around is called; the call itself where a round makes it."""
    file = places[0][0]
    loop = _loop_around(loss, at, file)
    if loop is not None:
        return loop
    if isinstance(at, ast.Call) and depth == 0 and _is_made_in_loop(loss, at, file, program):
        return at
    function = program.names(file).function_of(at)
    name = dotted_name(loss)
    if function is None or name is None or depth >= _DEPTH:
        return None
    for index, (where, statement) in enumerate(places[1:], 1):
        for node in _shallow(statement):
            if isinstance(node, ast.Call) and (dotted_name(node.func) or "").rpartition(".")[2] == function.name:
                given = dict(arguments_of(node, function)).get(name)
                if given is not None:
                    return _handing_loop(given, node, places[index:], program, depth + 1)
        if program.names(where).function_of(statement) is not function:
            return None
    return None


def _loop_around(loss: ast.expr, at: ast.AST, file: SourceFile) -> ast.AST | None:
    """The loop or comprehension that hands out the loss: `for loss in losses`, `for i in range(n)` with `losses[i]`."""
    roots, above = reads(loss), file.parents.get(at)
    while above is not None and not isinstance(above, _SCOPES):
        if isinstance(above, _LOOPS):
            heads = [above] if isinstance(above, ast.For) else above.generators
            for one in heads:
                targets = {node.id for node in walk(one.target) if isinstance(node, ast.Name)}
                if isinstance(loss, ast.Subscript):
                    keys = {node.id for node in walk(loss.slice) if isinstance(node, ast.Name)}
                    if keys & targets and not targets & reads(loss.value):
                        return above
                elif dotted_name(loss) in targets and roots and _is_collection(one.iter):
                    return above
        above = file.parents.get(above)
    return None


def _is_collection(node: ast.expr) -> bool:
    """Whether an iterable holds values that are there before the loop begins, rather than making each as it is asked."""
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return True
    if isinstance(node, (ast.List, ast.Tuple)):
        return all(not isinstance(one, ast.Starred) for one in node.elts)
    if isinstance(node, ast.Call):
        last = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return last in _HANDS_OUT and all(_is_collection(one) for one in node.args)
    return False


def _is_made_in_loop(loss: ast.expr, call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether each round makes its loss from what one forward before the loop gave, within a step of training."""
    statement, loop = file.statement(call), file.parents.get(file.statement(call))
    if not isinstance(loop, ast.For) or _writes(loop.body):
        return False
    outside = [one for one in graph_lines(loss, statement, file, program) if before(one, loop)]
    bound = set[str]().union(*(binds(one) for each in loop.body for one in walk(each) if isinstance(one, ast.stmt)))
    if not outside or any(binds(one) & bound for one in outside):
        return False  # nothing is shared, or the rounds hand it on
    if file.enclosing(loop, ast.For, ast.While) is not None:
        return True
    scope = scope_of(loop, file, program)
    return scope is not None and any(before(loop, one) and _writes([one]) for one in statements_of(scope))


def _writes(body: list[ast.stmt] | tuple[ast.stmt, ...]) -> bool:
    """Whether statements step an optimizer or write tensors in place: then the next loss needs another forward."""
    for node in (node for one in body for node in walk(one)):
        if not isinstance(node, ast.Attribute):
            continue
        is_in_place = node.attr.endswith("_") and not node.attr.startswith("_") and node.attr != "requires_grad_"
        if node.attr in ("step", "data") or is_in_place:
            return True
    return False


def _is_read_alone(call: ast.Call, file: SourceFile) -> bool:
    """Whether a loop around `loss.backward()` reads the gradients of each loss and clears them before the next one's."""
    loop = file.enclosing(file.statement(call), ast.For)
    if not isinstance(loop, ast.For):
        return False
    nodes = [node for one in loop.body for node in walk(one)]
    reads_them = any(
        isinstance(one, ast.Attribute) and one.attr == "grad" and isinstance(one.ctx, ast.Load) for one in nodes
    )
    clears = any(_clears(one) for one in nodes)
    return reads_them and clears


def _clears(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        is_none = isinstance(node.value, ast.Constant) and node.value.value is None
        return is_none and any(isinstance(one, ast.Attribute) and one.attr == "grad" for one in node.targets)
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "zero_grad"
