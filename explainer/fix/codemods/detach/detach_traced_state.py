"""What a trace saw an earlier step make, and a later one take up with its graph, is kept without it.

Where the value was stored, if its own step computed nothing else with it; else where it was taken up, if that line takes up
nothing of its own step. Whatever class, container or closure carried it in between.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.fix.graph.detachment import CUTS, PUTS
from explainer.fix.text.rewrite import operand, put_method
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.model.trace import CARRIED, TAKEN
from explainer.source.file import SourceFile
from explainer.source.loop.backward import find_backwards
from explainer.source.name import bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import Value, all_parameters, bounds_of, scope_of
from explainer.source.value.callee import leads_to
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import before, loops_of, reads
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_KEPT = "keeps the graph of its step, which a later step goes back through"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all lines that store such a value; one for all that take it up."""
    if not context.has_failed:
        return
    # What its own step computed with, too, is not to be stored without its graph.
    used = {one for line, _, one in traced_statements(CARRIED, context, guesses=True) if line.is_guess}
    for kind, why, belief in (
        (CARRIED, _KEPT, 2.6),
        (TAKEN, "takes up the graph of an earlier step", 1.6),
    ):
        edits: dict[Edit, None] = {}
        places: list[tuple[SourceFile, ast.stmt]] = []
        for line, file, statement in traced_statements(kind, context, guesses=kind == TAKEN):
            if line.is_guess and not (carried := _names_of_round(statement, file, context.program)):
                continue
            if kind == TAKEN and (sum_up := _added_to(statement, file, context.program)) is not None:
                edits[sum_up] = None
                places.append((file, statement))
                continue
            stored = list(_stored(statement, file)) if statement not in used else []
            found = stored or (list(_attributes(statement, file, context.program)) if kind == TAKEN else [])
            if line.is_guess:  # the line runs on values of its own step too: a layer's, behind what it is given
                found = [one for one in found if isinstance(one, ast.Name) and one.id in carried]
                if not found:
                    continue
            cuts = tuple(_edits(found, statement, file, context))
            if not cuts:
                edits = {}
                break
            edits |= dict.fromkeys(cuts)
            places.append((file, statement))
        if edits:
            yield Proposal(edits=tuple(edits), culprit=culprit_of(*places[0], why), belief=belief)
    yield from _kept_beside(context)
    yield from _kept_apart(context)
    yield from _shown_to_both(context)


def _shown_to_both(context: Context) -> Iterator[Proposal]:
    """What callers give an average that keeps numbers as well, detached there: a number has no `detach`."""
    program = context.program
    for _, file, statement in traced_statements(CARRIED, context):
        function = program.names(file).function_of(statement)
        if function is None:
            continue
        given = reads(statement, graph=False) & all_parameters(function)
        calls = resolver_of(program).calls_of(function, file) if given else []
        values = [(where, one) for where, call in calls for name, one in arguments_of(call, function) if name in given]
        numbers = [one for _, one in values if getattr(getattr(one, "func", None), "attr", "") == "item"]
        live = [(where, one) for where, one in values if provenance_of(program).trace(Value(one, where)).live]
        if numbers and live:
            yield Proposal(
                edits=tuple(put_method(where, one, ".detach()") for where, one in live),
                culprit=culprit_of(*live[0], "gives a tensor with its graph to what keeps it for later steps"),
                belief=2.4,
            )


def _added_to(statement: ast.stmt, file: SourceFile, program: Program) -> Edit | None:
    """`self.total += value` as `self.total = self.total.detach() + value`: the sum so far has no graph, what is added keeps its own."""
    sign = {ast.Add: "+", ast.Sub: "-"}.get(type(statement.op)) if isinstance(statement, ast.AugAssign) else None
    if sign is None or not isinstance(statement, ast.AugAssign) or _kept_name(statement.target) is None:
        return None
    kept = file.segment(statement.target)
    if any(ast.unparse(one.loss) == kept for one in find_backwards(program)):
        return None  # the loss of each step, which is to begin anew
    return edit_of(file, statement, f"{kept} = {kept}.detach() {sign} {operand(file, statement.value)}")


def _edits(found: list[ast.expr], statement: ast.stmt, file: SourceFile, context: Context) -> Iterator[Edit]:
    """The values detached where they stand; before the loop where its later rounds, which go back together, take them up."""
    loop = _unrolled(statement, file, context)
    if loop is None:
        yield from (put_method(file, one, ".detach()") for one in found)
        return
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    kept = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    names = [_kept_name(one) for one in kept]
    if all(names) and not any(_is_emptied(one, context) for one in kept):
        yield insert_before(file, loop, "\n".join(f"{one} = {one}.detach()" for one in names))


def _kept_name(node: ast.AST | None) -> str | None:
    """`self.h`, `state["h"]`: what outlives a function, as it is written; None for anything else."""
    is_entry = (
        isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Constant)
    )
    is_attribute = isinstance(node, ast.Attribute) and dotted_name(node) is not None
    return ast.unparse(node) if node is not None and (is_entry or is_attribute) else None


def _unrolled(statement: ast.stmt, file: SourceFile, context: Context) -> ast.stmt | None:
    """The outermost loop around a statement that no backward ends a round of, and that both reads and binds what this keeps."""
    found: ast.stmt | None = None
    kept = {_kept_name(one) for one in walk(statement)} - {None}
    backwards = [one.statement for one in find_backwards(context.program)]
    for loop in loops_of(statement, file):
        inside = set(walk(loop))
        if any(one in inside or leads_to(one, loop, file, context.program) for one in backwards):
            break
        named = [(name, one) for one in inside if (name := _kept_name(one)) in kept]
        stored = {name for name, one in named if isinstance(getattr(one, "ctx", None), ast.Store)}
        if any(name in stored and isinstance(getattr(one, "ctx", None), ast.Load) for name, one in named):
            found = loop
    return found


def _is_emptied(node: ast.AST | None, context: Context) -> bool:
    """Whether an attribute or entry is a constant at times, as None, or several states at once."""
    last = _last_name(node)
    return any(
        isinstance(value, (ast.Constant, ast.Tuple, ast.List)) and _last_name(place) == last
        for file in context.program.parsed()
        for one in file.walk()
        for place, value in _given(one)
    )


def _given(node: ast.AST) -> list[tuple[ast.expr | None, ast.expr]]:
    """What a statement or a dictionary gives to what."""
    if isinstance(node, ast.Assign):
        return [(one, node.value) for one in node.targets]
    return list(zip(node.keys, node.values, strict=True)) if isinstance(node, ast.Dict) else []


def _last_name(node: ast.AST | None) -> object:
    """`h` of `self.h`, of `state["h"]` and of the key `"h"`."""
    if isinstance(node, ast.Subscript):
        node = node.slice
    return node.attr if isinstance(node, ast.Attribute) else node.value if isinstance(node, ast.Constant) else node


def _kept_beside(context: Context) -> Iterator[Proposal]:
    """`self.state = new` behind the line that made `new`, whose own step computes with it too: what is kept loses its graph."""
    edits: dict[Edit, None] = {}
    culprit: Culprit | None = None
    for line, file, statement in traced_statements(CARRIED, context, guesses=True):
        made = set(bound_names(statement)) if line.is_guess else set()
        for one in walk(scope_of(statement, file)):
            if not isinstance(one, ast.Assign) or not isinstance(one.value, ast.Name) or one.value.id not in made:
                continue
            if isinstance(one.targets[0], (ast.Attribute, ast.Subscript)) and before(statement, one):
                edits |= dict.fromkeys(_edits([one.value], one, file, context))
                culprit = culprit or culprit_of(file, one, _KEPT)
    if culprit is not None and edits:
        yield Proposal(edits=tuple(edits), culprit=culprit, belief=2.2)


def _kept_apart(context: Context) -> Iterator[Proposal]:
    """`self.usual = 0.9 * self.usual + 0.1 * entropy` in a method of its own: what is kept loses its graph, where it is kept.

    Only where the lines that a trace saw take up an earlier step's value are all that read it: its own step computes nothing
    with what it stores.
    """
    taken = list(traced_statements(TAKEN, context))
    statements = [one for _, _, one in taken]
    edits: dict[Edit, None] = {}
    culprit: Culprit | None = None
    for _, file, statement in taken:
        for node in _attributes(statement, file, context.program):
            owner = context.program.names(file).class_of(node)
            kept = _stores(node, owner, statements, file) if owner is not None else []
            if not kept:
                return
            edits |= dict.fromkeys(put_method(file, one, ".detach()") for one in kept)
            culprit = culprit or culprit_of(file, kept[-1], _KEPT)
    if culprit is not None and edits:
        yield Proposal(edits=tuple(edits), culprit=culprit, belief=2.0)


def _stores(node: ast.expr, owner: ast.ClassDef, taken: list[ast.stmt], file: SourceFile) -> list[ast.expr]:
    """The values that a class gives an attribute of `self`; none where something else of it reads that, or adds to it."""
    name = dotted_name(node) or ""
    found: list[ast.expr] = []
    inside = set(walk(owner))
    for one in inside:
        if not isinstance(one, ast.Attribute) or dotted_name(one) != name:
            continue
        statement = file.statement(one)
        is_store = isinstance(statement, ast.Assign) and dotted_name(statement.targets[0]) == name
        if is_store and isinstance(statement, ast.Assign):
            if not isinstance(statement.value, ast.Constant) and statement.value not in found:
                found.append(statement.value)
        elif isinstance(one.ctx, ast.Store) or not (
            statement in taken or isinstance(file.parents.get(one), ast.Compare)
        ):
            return []
    last = name.rpartition(".")[2]
    others = [one for one in file.attributes.get(last, ()) if one not in inside]
    return sorted(found, key=start_of) if name.startswith("self.") and not others else []


def _stored(statement: ast.stmt, file: SourceFile) -> Iterator[ast.expr]:
    """The parts of what a statement puts into what outlives its function, or into a container; a sum that goes on is none."""
    value: ast.expr | None = None
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    is_outer = isinstance(target, ast.Name) and target.id in _outer_names(statement, file)
    if isinstance(statement, ast.Assign) and (is_outer or isinstance(target, (ast.Attribute, ast.Subscript))):
        value = statement.value
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func, given = statement.value.func, statement.value.args
        if isinstance(func, ast.Attribute) and func.attr in PUTS and given:
            value = given[-1]
    if value is None or any(isinstance(one, ast.Attribute) and one.attr in CUTS for one in walk(value)):
        return
    yield from value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]


def _attributes(statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[ast.expr]:
    """What a statement reads, as an operand or argument, of what outlives the step.

    `self.state`, `bank.slots[key]`, `memory["mean"]`, a name that the function declares `nonlocal` or `global`.
    """
    stored = {
        ast.unparse(one) for one in file.walk() if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store)
    }
    outer = _outer_names(statement, file) | _names_of_round(statement, file, program)
    for node in walk(statement):
        above = file.parents.get(node)
        is_outer = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in outer
        is_entry = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and ast.unparse(node) in stored
        if is_outer or is_entry:
            assert isinstance(node, ast.expr)
            if isinstance(above, ast.BinOp) or (isinstance(above, ast.Call) and node in above.args):
                yield node
            continue
        is_read = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and dotted_name(node) is not None
        while isinstance(above, ast.Subscript) and above.value is node:
            node, above = above, file.parents.get(above)
        is_operand = isinstance(above, ast.BinOp) or (isinstance(above, ast.Call) and node in above.args)
        if is_read and is_operand and isinstance(node, ast.expr) and not _is_made(node, file):
            yield node


def _names_of_round(statement: ast.stmt, file: SourceFile, program: Program) -> set[str]:
    """The local names that a statement reads before its round of a loop binds them: they hold what an earlier step made.

    Of loops whose rounds are steps, which end with a backward, or hand something out of a generator. A sum that goes on, as
    `total = total + loss`, is no state, nor is an average of losses, which is a number to look at or to divide by.
    """
    found: set[str] = set()
    for loop in loops_of(statement, file):
        if not _is_step(loop, file, program):
            continue
        bound = {name: one for one in walk(loop) if isinstance(one, ast.Assign) for name in bound_names(one)}
        losses = {each.id for one in find_backwards(program) for each in walk(one.loss) if isinstance(each, ast.Name)}
        kept = {name: one for name, one in bound.items() if not before(one, statement)}
        found |= {name for name, one in kept.items() if not _is_sum(one, name, losses - {name})}
        found -= set(bound_names(loop))
    return found


def _is_step(loop: ast.For | ast.While, file: SourceFile, program: Program) -> bool:
    inside = set(walk(loop))
    backwards = [one.statement for one in find_backwards(program)]
    is_trained = any(one in inside or leads_to(one, loop, file, program) for one in backwards)
    return is_trained or any(isinstance(one, ast.Yield) for one in inside)


def _is_sum(statement: ast.Assign, name: str, losses: set[str]) -> bool:
    """Whether a statement adds to a name, or averages it with a loss: `x = x + y`, `x = 0.9 * x + 0.1 * loss`."""
    value = statement.value
    parts = (value.left, value.right) if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) else ()
    if any(dotted_name(one) == name for one in parts):
        return True
    read = [{each.id for each in walk(one) if isinstance(each, ast.Name)} for one in parts]
    return any(name in one for one in read) and any(one & losses and name not in one for one in read)


def _outer_names(statement: ast.stmt, file: SourceFile) -> set[str]:
    """The names at a statement that some function binds outside of itself, `nonlocal` or `global`."""
    declared = {
        (name, scope_of(one, file))
        for one in file.walk()
        if isinstance(one, (ast.Nonlocal, ast.Global))
        for name in one.names
    }
    scope = scope_of(statement, file)
    own: set[str] = set()
    if not isinstance(scope, ast.Module):
        own = all_parameters(scope) | {one.name for one in bounds_of(scope)}
        own -= {name for name, where in declared if where is scope}
    return {name for name, _ in declared} - own


def _is_made(node: ast.expr, file: SourceFile) -> bool:
    """Whether an attribute is a setting or a layer's, by its name: `self.alpha`, `layer.weight`."""
    last = (dotted_name(node) or "").rpartition(".")[2]
    return last in ("weight", "bias") or not any(
        isinstance(one, ast.Attribute) and one.attr == last and isinstance(one.ctx, ast.Store)
        and (function := file.enclosing(one, ast.FunctionDef)) is not None and getattr(function, "name", "") != "__init__"
        for one in file.walk()
    )  # fmt: skip
