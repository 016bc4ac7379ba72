"""What a training loop carries from step to step is detached between two steps; the gradients within a step stay.

A hidden state is detached where the next step takes it up, a running sum adds the detached loss, a loop that calls backward
on its own running sum calls it on the step's loss or on what the step adds, and a list of the step's own tensors is emptied for each step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import (
    Context,
    Proposal,
    culprit_of,
    edit_of,
    find_codemod,
    insert_after,
    insert_before,
    remove_statement,
)
from explainer.fix.graph.detachment import detached_form
from explainer.fix.loss.own_part import begins_with_graph, is_scaled_alike, part_by_itself, summed_in
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.backward import find_backwards, stepped
from explainer.source.loop.carried import LIST, TENSOR, Carried, find_carried, form_of
from explainer.source.loop.pile import find_piles
from explainer.source.loop.update import find_turns
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.entry import entries_in
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.lineage import (
    binds,
    block_of,
    changes,
    definitions,
    reads,
    scope_of,
    sources,
    statements_of,
)
from explainer.source.value.nesting import nesting_of
from explainer.source.value.resolve import resolver_of

_ARITHMETIC = (ast.BinOp, ast.UnaryOp)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each differentiable value that a training loop carries on."""
    if not context.has_failed:
        return
    program = context.program
    piled = {use.statement for pile in find_piles(program) for use in pile.added}
    found = [
        (one, made)
        for one in find_carried(program)
        if not piled & set(one.bindings)
        and not _is_object(one, program)
        and _is_in_loss(one, program)
        and (made := _cure(one, program)) is not None
    ]
    if found and next(find_codemod("old_policy_without_grad")(context), None) is not None:
        return  # the buffers of a rollout: detached after the first update, they would still cancel that one's gradients
    if len(found) > 1:  # each of them alone ties the steps together
        edits = dict.fromkeys(edit for _, (each, _, _) in found for edit in each)
        one, (_, guilty, why) = found[0]
        yield Proposal(edits=tuple(edits), culprit=culprit_of(one.file, guilty, why), belief=1.9)
    for one, (each, guilty, why) in found:
        yield Proposal(edits=each, culprit=culprit_of(one.file, guilty, why), belief=1.5)


def _is_object(one: Carried, program: Program) -> bool:
    """Whether the value is an object of a class of the program, which has no `detach` of its own, and no record."""
    made = one.start
    if list(_attributes(one)) or (made is not None and nesting_of(made, one.file, program).is_container):
        return False
    found = resolver_of(program).find_class(made.func, one.file) if isinstance(made, ast.Call) else None
    return found is not None and not any(getattr(each, "name", "") == "detach" for each in found[1].body)


def _cure(one: Carried, program: Program) -> Found | None:
    form = form_of(one, program)
    if form == LIST and any(isinstance(each, ast.Expr) and one.name in changes(each) for each in one.bindings):
        return _of_list(one, program)
    if all(_is_accumulation(binding, one.name) for binding in one.bindings):
        return _of_sum(one, program)
    return _of_average(one, program) or _of_state(one, form, program)


Found = tuple[tuple[Edit, ...], ast.AST, str]


def _is_in_loss(one: Carried, program: Program) -> bool:
    """Whether a step's loss goes through the carried value, or the step is a helper that is given it."""
    if one.name in reads(one.step):
        return True
    for backward in find_turns(program):
        if backward.file is one.file:
            parts = [
                backward.loss,
                *(part for _, part in sources(backward.loss, backward.statement, one.file, program)),
            ]
            if any(one.name in reads(part) for part in parts):
                return True
    return False


def _is_accumulation(statement: ast.stmt, name: str) -> bool:
    """`s += x`, `s = a * s + b * x`: arithmetic on the value itself."""
    if isinstance(statement, ast.AugAssign):
        return dotted_name(statement.target) == name
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, _ARITHMETIC):
        return False
    return any(dotted_name(one) == name for one in _operands(statement.value))


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    """The operands of a tree of arithmetic."""
    if isinstance(node, ast.BinOp):
        yield from _operands(node.left)
        yield from _operands(node.right)
    elif isinstance(node, ast.UnaryOp):
        yield from _operands(node.operand)
    else:
        yield node


def _of_sum(one: Carried, program: Program) -> Found | None:
    """A running value: what it takes up is detached; backward is called on the step's loss, not on the sum."""
    file, edits = one.file, []
    for binding in one.bindings:
        assert isinstance(binding, (ast.Assign, ast.AugAssign))
        parts = [part for part in _operands(binding.value) if dotted_name(part) != one.name and reads(part)]
        edits += [
            put_method(file, part, ".detach()") for part in parts if flow_of(program).reach_of(part, file) != Reach.NONE
        ]
    if not edits:
        return None
    names = program.names(file)
    here = [each for each in find_backwards(program)
            if each.file is file and names.function_of(each.call) is names.function_of(one.bindings[0])]  # fmt: skip
    wrong = [(each, summed) for each in here if (summed := summed_in(each.loss, one, program)) is not None]
    if wrong and begins_with_graph(one, program):
        return None
    if not all(
        _is_done_with(each.statement, one.bindings[0], file) and is_scaled_alike(each.loss, one, program)
        for each, _ in wrong
    ):
        return None
    term = _term(one)
    if wrong and term is None:
        # With a state beside it, a round's part is not its own: the sum of all may be meant to go back once, behind the loop.
        is_alone = all(each.loop is not one.loop or each.name == one.name for each in find_carried(program))
        apart = part_by_itself(one, wrong, program) if is_alone else None
        if apart is None:
            return None
        edits = list(apart)
    elif term is not None:
        edits += [edit_of(file, summed, file.segment(term)) for _, summed in wrong]
    why = f"adds this step's graph to `{one.name}`, which the next step's loss goes through"
    return tuple(edits), one.bindings[0], why


def _of_average(one: Carried, program: Program) -> Found | None:
    """`run = loss if run is None else 0.9 * run + 0.1 * loss`: an average to look at, whose step goes back through its own loss."""
    binding = one.bindings[0]
    value = binding.value if len(one.bindings) == 1 and isinstance(binding, ast.Assign) else None
    if not isinstance(value, ast.IfExp) or one.name not in reads(value.test, graph=False):
        return None
    averages = [each for each in (value.body, value.orelse) if isinstance(each, ast.BinOp)]
    news = [each for each in (value.body, value.orelse) if isinstance(each, ast.Name) and each.id != one.name]
    if len(averages) != 1 or len(news) != 1:
        return None
    loss = news[0].id
    added = [each for each in _operands(averages[0]) if dotted_name(each) == loss]
    backwards = [
        each for each in find_backwards(program) if each.file is one.file and dotted_name(each.loss) == one.name
    ]
    if not added or one.name not in {dotted_name(each) for each in _operands(averages[0])} or not backwards:
        return None
    file = one.file
    edits = [put_method(file, each, ".detach()") for each in (news[0], *added)]
    edits += [edit_of(file, each.loss, loss) for each in backwards]
    return tuple(edits), binding, f"averages the losses of all steps with their graphs, and `{one.name}` goes back"


def _is_done_with(statement: ast.stmt, other: ast.stmt, file: SourceFile) -> bool:
    """Whether two statements are done in the same rounds: a sum that is sent back more seldom is more than its last term."""
    kinds = (ast.For, ast.While, ast.If, ast.FunctionDef, ast.AsyncFunctionDef)
    return file.enclosing(statement, *kinds) is file.enclosing(other, *kinds)


def _term(one: Carried) -> ast.expr | None:
    """What a step adds to a running sum; None where that is not one thing."""
    binding = one.bindings[0]
    if len(one.bindings) != 1:
        return None
    if isinstance(binding, ast.AugAssign):
        return binding.value if isinstance(binding.op, ast.Add) and dotted_name(binding.value) else None
    value = binding.value if isinstance(binding, ast.Assign) else None
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    sides = [each for each in (value.left, value.right) if dotted_name(each) != one.name]
    return sides[0] if len(sides) == 1 and dotted_name(sides[0]) else None


def _of_list(one: Carried, program: Program) -> Found | None:
    """A bank keeps detached entries; a list that is all the step's loss is made of starts empty in each step."""
    file = one.file
    added = [each.value.args[0] for each in one.bindings
             if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) and each.value.args]  # fmt: skip
    if not added:
        return None
    if _reaches_otherwise(one, added, program):
        edits = tuple(put_method(file, each, ".detach()") for each in added)
        return edits, one.bindings[0], f"keeps this step's graph in `{one.name}`"
    made = _creations(one, program)
    if not made or isinstance(file.enclosing(one.step, ast.For, ast.While, ast.If), ast.If):
        return None
    text = "\n".join(file.segment(each) for each in made)
    why = f"is made once, so that `{one.name}` still holds the graphs of earlier steps"
    edits = (*(remove_statement(file, each) for each in made), insert_before(file, one.loop.body[0], text))
    return edits, made[0], why


def _creations(one: Carried, program: Program) -> list[ast.stmt]:
    """The statements before the loop that make the list, and the lists that are filled beside it for the same loss."""
    scope, file = scope_of(one.loop, one.file, program), one.file
    beside = [name for each in block_of(one.bindings[0], file) for name in changes(each) if isinstance(each, ast.Expr)]
    wanted = set[str]()
    for backward in find_backwards(program):
        if backward.file is file:
            lines = [*sources(backward.loss, backward.statement, file, program), (backward.statement, backward.loss)]
            wanted |= set[str]().union(*(reads(part, graph=False) for _, part in lines))
    found: dict[ast.stmt, None] = {}
    for name in [one.name, *(each for each in beside if each in wanted)]:
        for made in definitions(name, one.loop, scope) if scope is not None else []:
            value = made.value if isinstance(made, ast.Assign) else None
            parts = value.elts if isinstance(value, ast.Tuple) else [value]
            if not all(isinstance(part, ast.List) and not part.elts for part in parts):
                return []
            found[made] = None
    return list(found)


def _reaches_otherwise(one: Carried, added: list[ast.expr], program: Program) -> bool:
    """Whether what is put into a list also reaches the step's loss past the list."""
    names = set[str]().union(*(reads(each) for each in added))
    for backward in find_backwards(program):
        if backward.file is not one.file:
            continue
        for _, part in [(None, backward.loss), *sources(backward.loss, backward.statement, one.file, program)]:
            is_added = any(each is part or each in set(walk(part)) for each in added)
            if not is_added and reads(part) & names:
                return True
    return False


def _of_state(one: Carried, form: str, program: Program) -> Found | None:
    """A state that calls hand on: `net(x, hidden.detach())`, or `hidden = hidden.detach()` behind the step."""
    file = one.file
    why = f"hands `{one.name}` on to the next step with the graph of this one"
    uses = _uses_before_binding(one, program)
    # A start that is learned keeps its graph for the first step, where the value is taken up too.
    is_tensor = form == TENSOR and isinstance(one.start, ast.Call) and not begins_with_graph(one, program)
    if is_tensor and len(uses) == 1 and _is_argument(uses[0], one) and not _is_repeated(uses[0], one):
        return (
            (put_method(file, uses[0], ".detach()"),),
            uses[0],
            f"takes up `{one.name}` with the graph of the last step",
        )
    if _is_detached(one, program) or _is_started_anew(one):
        return None
    names = list(dict.fromkeys(_attributes(one))) or [(one.name, one.bindings[-1])]
    cuts = [(name, detached_form(name, made, form, file, program)) for name, made in names]
    lines = dict.fromkeys(f"{name} = {text}" for name, text in cuts if text != name)
    return ((insert_after(file, _after(one), "\n".join(lines)),), one.bindings[-1], why) if lines else None


def _attributes(one: Carried) -> Iterator[tuple[str, ast.stmt]]:
    """The attributes of the carried object to which a round gives values: `memory.h` of `memory.h, memory.c = cell(...)`."""
    for statement in one.bindings:
        for entry in entries_in(statement):
            name = dotted_name(entry.place)
            if entry.name == one.name and name is not None and reads(entry.value):
                yield name, statement


def _is_started_anew(one: Carried) -> bool:
    """Whether the round that goes back gives the name a number afterwards: `total = 0.0`."""
    block = block_of(one.step, one.file)
    behind = block[block.index(one.step) :] if one.step in block else ()
    return any(
        isinstance(each, ast.Assign) and each in behind and isinstance(each.value, ast.Constant)
        for each in one.bindings
    )


def _uses_before_binding(one: Carried, program: Program) -> list[ast.expr]:
    scope = scope_of(one.loop, one.file, program)
    found: list[ast.expr] = []
    for statement in (
        statements_of(scope) if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)) else ()
    ):
        is_inside = one.loop.lineno < statement.lineno <= (one.loop.end_lineno or 0)
        if not is_inside or isinstance(statement, (ast.For, ast.While, ast.If, ast.With, ast.Try)):
            continue
        found += [node for node in walk(statement) if isinstance(node, (ast.Name, ast.Attribute))
                  and isinstance(node.ctx, ast.Load) and dotted_name(node) == one.name]  # fmt: skip
        if one.name in binds(statement) | changes(statement):
            break
    return found


def _is_argument(node: ast.expr, one: Carried) -> bool:
    above = one.file.parents.get(node)
    return isinstance(above, ast.Call) and node in above.args


def _is_repeated(node: ast.expr, one: Carried) -> bool:
    """Whether a use stands in a loop within the step, where detaching it would cut the step's own graph."""
    return one.file.enclosing(node, ast.For, ast.While, ast.ListComp, ast.GeneratorExp) is not one.loop


def _is_detached(one: Carried, program: Program) -> bool:
    """Whether the round ends with, or begins by, a detached value already."""
    scope = scope_of(one.loop, one.file, program)
    inside = (
        [each for each in statements_of(scope) if one.loop.lineno < each.lineno <= (one.loop.end_lineno or 0)]
        if scope is not None
        else []
    )
    kinds = (ast.Assign, ast.Expr)
    bound = [
        each for each in inside if one.name in binds(each) | changes(each) | _filled(each) and isinstance(each, kinds)
    ]
    return any(_detaches(each, one, program) for each in bound) or any(
        isinstance(node, ast.Attribute) and node.attr in ("detach", "detach_") and dotted_name(node.value) == one.name
        for each in inside for node in walk(each)
    )  # fmt: skip


def _filled(statement: ast.stmt) -> set[str]:
    return {entry.name for entry in entries_in(statement)}


def _detaches(statement: ast.stmt, one: Carried, program: Program) -> bool:
    """Whether a statement's value is detached, also by a function of the program that does nothing else to a graph."""
    for node in walk(statement):
        if isinstance(node, ast.Attribute) and node.attr == "detach":
            return True
        target = flow_of(program).target_of(node, one.file) if isinstance(node, ast.Call) else None
        inner = {getattr(each, "attr", "") for each in walk(target[1])} if target else set()
        if target and "detach" in inner and "backward" not in inner:
            return target[1].name != "forward"
    return False


def _after(one: Carried) -> ast.stmt:
    """The optimizer's step that follows backward in its block, or backward itself, or the last binding where that comes later."""
    block = block_of(one.step, one.file)
    at = block.index(one.step) if one.step in block else 0
    later = [each for each in block[at:] if stepped(each)]
    last = later[-1] if later else one.step
    bound = [each for each in one.bindings if each in block and each.lineno > last.lineno]
    return bound[-1] if bound else last
