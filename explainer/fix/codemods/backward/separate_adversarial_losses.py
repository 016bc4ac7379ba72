"""Two networks that train against each other: each loss reaches its own network, through weights that are still in place.

The first loss scores `fake.detach()`, the second one scores `fake` anew after the first network's step, as in DCGAN; the
actor's loss, computed before the critic's step, moves behind it. Which network a loss trains is read from the optimizers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import fails_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before, remove_statement
from explainer.fix.text.argument import drop_keyword
from explainer.model.patch import Edit
from explainer.source.loop.backward import calls_of
from explainer.source.loop.pair import Pair, find_pairs, runs
from explainer.source.name import entry_name
from explainer.source.program import Program
from explainer.source.tree import children, walk
from explainer.source.value.lineage import before, binds, block_of, reads, sources, statements_of, value_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each two backward calls between which one of the two networks is stepped."""
    if not context.has_failed:
        return
    for pair in find_pairs(context.program, updates=True):
        critic, actor = pair.stepped, pair.trained_later - pair.stepped
        if not critic or not actor or not pair.second.is_plain or not pair.first.is_plain:
            continue
        found = _critic_first(pair, critic, actor, context.program) or _actor_first(
            pair, critic, actor, context.program
        )
        if found is None:
            continue
        edits, guilty, why = found
        yield Proposal(
            edits=tuple(edits),
            culprit=culprit_of(pair.file, guilty, why),
            belief=1.0 + (1.0 if fails_at(pair.second, context) else 0.0),
        )


Found = tuple[list[Edit], ast.AST, str]


def _critic_first(pair: Pair, critic: frozenset[str], actor: frozenset[str], program: Program) -> Found | None:
    """The second loss trains what lies before the stepped network: `D(fake.detach())` before, `D(fake)` again after."""
    step = pair.steps[-1][0]
    reached = [one for one in pair.second_lines if before(one, step) and calls_of(critic, one, pair.file, program)]
    joint = _stale(pair, [one for one in reached if one in pair.first_lines])
    moved = _moved(pair, step, [*reached])
    if not runs(actor, pair.second, pair.second_lines, program):
        return None
    cut = _detached(pair, critic, actor, program)
    again = _scored_again(pair, joint, step) if joint else ([], None)
    if again is None or moved is None or not (cut or reached):
        return None
    if not cut and not all(one in moved for one in reached):
        return None
    rescored = list(again[0])
    moves = _moves(pair, moved, step, edits=rescored)
    edits = [*cut, *rescored, *moves]
    if pair.first.retains is not None:
        edits.append(drop_keyword(pair.file, pair.first.call, pair.first.retains))
    network = min(critic)
    if again[1] is not None:
        return edits, again[1], f"goes through scores of `{network}` from before its optimizer's step"
    if moved:
        return edits, moved[0], f"goes through `{network}`, whose optimizer steps before this loss's backward"
    return (
        edits,
        _cut_line(pair, cut),
        f"trains `{min(actor)}` too, and its backward frees the graph that the second loss needs",
    )


def _cut_line(pair: Pair, cut: list[Edit]) -> ast.AST:
    line = pair.file.text.count("\n", 0, cut[0].start) + 1
    inside = [one for one in (*pair.first_lines, pair.first.statement) if one.lineno <= line <= (one.end_lineno or 0)]
    return inside[-1]


def _detached(pair: Pair, critic: frozenset[str], actor: frozenset[str], program: Program) -> list[Edit]:
    """`.detach()` on what the other network made, where the first loss gives it to its own."""
    found: dict[int, Edit] = {}
    for line in (*pair.first_lines, pair.first.statement):
        holder = pair.first.loss if line is pair.first.statement else line
        for call in calls_of(critic, holder, pair.file, program):
            for argument in (*call.args, *(one.value for one in call.keywords)):
                for name in _made_by(actor, argument, line, pair, program):
                    end = pair.file.span(name)[1]
                    found[end] = Edit(file=pair.file.path, start=end, end=end, new=".detach()")
    return [found[key] for key in sorted(found)]


def _made_by(actor: frozenset[str], node: ast.expr, at: ast.stmt, pair: Pair, program: Program) -> Iterator[ast.expr]:
    """The names, or calls, in an argument through which gradients reach the other network."""
    if (
        isinstance(node, ast.Call)
        and calls_of(actor, node, pair.file, program)
        and not any(calls_of(actor, one, pair.file, program) for one in node.args)
    ):
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "detach":
            yield node
        return
    name = entry_name(node)
    if name is not None:
        if (
            name not in actor
            and reads(node)
            and any(calls_of(actor, one, pair.file, program) for _, one in sources(node, at, pair.file, program))
        ):
            yield node
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
        return
    for child in children(node):
        if isinstance(child, ast.expr):
            yield from _made_by(actor, child, at, pair, program)


def _stale(pair: Pair, scored: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that both losses share from the network's scores on."""
    found = list(scored)
    names = set[str]().union(*(binds(one) for one in found))
    for one in [each for each in pair.second_lines if each in pair.first_lines]:
        if one not in found and reads(one) & names and found and before(found[0], one):
            found.append(one)
            names |= binds(one)
    return sorted(found, key=lambda one: one.lineno)


def _scored_again(pair: Pair, joint: list[ast.stmt], step: ast.stmt) -> tuple[list[Edit], ast.AST | None] | None:
    """The second loss computes the scores that both shared once more, where it reads them."""
    readers = [one for one in pair.second_lines if one not in pair.first_lines]
    readers.append(pair.second.statement)
    made = {name: _value_for(one, name) for one in joint for name in binds(one)}
    places = [
        (reader, node)
        for reader in readers
        for node in walk(reader)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in made
    ]
    if not places:
        return None
    values = {node.id: made[node.id] for _, node in places}
    is_single = len(places) == len(values) and all(value and not reads(value) & set(made) for value in values.values())
    if is_single:
        edits = [
            edit_of(pair.file, node, pair.file.segment(value))
            for _, node in places
            if (value := values[node.id]) is not None
        ]
        return edits, places[0][0]
    if not all(before(step, reader) for reader, _ in places):
        return None
    text = "\n".join(pair.file.segment(one) for one in joint)
    first = min((reader for reader, _ in places), key=lambda one: one.lineno)
    return [insert_before(pair.file, first, text)], first


def _value_for(statement: ast.stmt, name: str) -> ast.expr | None:
    """The expression that a statement gives to a name; None where it comes out of a tuple that a call returns."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    value = value_of(statement, name)
    is_one = value is not statement.value or isinstance(statement.targets[0], ast.Name)
    return value if is_one and isinstance(value, (ast.Call, ast.Subscript, ast.Attribute)) else None


def _moved(pair: Pair, step: ast.stmt, reached: list[ast.stmt]) -> list[ast.stmt] | None:
    """The statements of the second loss alone that use the network before its step; None where they cannot move."""
    names: set[str] = set()
    for one in reached:
        names |= binds(one)
    moved: list[ast.stmt] = []
    for one in pair.second_lines:
        if one in pair.first_lines or not before(one, step):
            continue
        if one in reached or reads(one) & names:
            moved.append(one)
            names |= binds(one)
    block = block_of(step, pair.file)
    if not moved:
        return moved
    if any(one not in block for one in moved) or _is_read_between(pair, moved, step):
        return None
    return moved


def _is_read_between(pair: Pair, moved: list[ast.stmt], step: ast.stmt) -> bool:
    """Whether a statement that stays reads what a moved one binds, or changes what one reads, before the step."""
    function = pair.file.enclosing(step, ast.FunctionDef, ast.AsyncFunctionDef) or pair.file.tree
    assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module))
    made = set[str]().union(*(binds(one) for one in moved))
    wanted = set[str]().union(*(reads(one, graph=False) for one in moved))
    between = [
        one for one in statements_of(function) if before(moved[0], one) and before(one, step) and one not in moved
    ]
    return any(
        reads(one, graph=False) & made or (binds(one) & wanted and one not in pair.first_lines) for one in between
    )


def _moves(pair: Pair, moved: list[ast.stmt], step: ast.stmt, edits: list[Edit]) -> list[Edit]:
    """The statements taken out and put behind the step, with the edits that lie in them done."""
    if not moved:
        return []
    texts = []
    for one in moved:
        start, end = pair.file.span(one)
        text = pair.file.text[start:end]
        for edit in sorted((each for each in edits if start <= each.start < end), key=lambda each: -each.start):
            text = text[: edit.start - start] + edit.new + text[edit.end - start :]
            edits.remove(edit)
        texts.append(text)
    removed = [remove_statement(pair.file, one) for one in moved]
    return [*removed, insert_after(pair.file, step, "\n".join(texts))]


def _actor_first(pair: Pair, stepped: frozenset[str], later: frozenset[str], program: Program) -> Found | None:
    """The generator is stepped first, and the critic's own loss scores what it made: that loss gets it detached."""
    if not runs(later, pair.first, pair.first_lines, program) or not pair.shared:
        return None
    found: dict[int, Edit] = {}
    guilty: ast.AST | None = None
    for line in (*pair.second_lines, pair.second.statement):
        holder = pair.second.loss if line is pair.second.statement else line
        for call in calls_of(later, holder, pair.file, program) if line not in pair.first_lines else ():
            for argument in call.args:
                for name in _made_by(stepped, argument, line, pair, program):
                    end = pair.file.span(name)[1]
                    found[end] = Edit(file=pair.file.path, start=end, end=end, new=".detach()")
                    guilty = guilty or line
    if guilty is None:
        return None
    edits = list(found.values())
    if pair.first.retains is not None:
        edits.append(drop_keyword(pair.file, pair.first.call, pair.first.retains))
    return edits, guilty, f"goes back into `{min(stepped)}`, which has been stepped"
