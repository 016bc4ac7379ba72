"""Two backward calls through one shared part become one: `(a + b).backward()` gives the same gradients in one pass.

Where an optimizer that owns no part of both losses steps between the calls, or something reads gradients there, the first
call keeps its graph instead: that is then what the program means. Where the shared part is the first loss's optimizer's, and
the second loss has networks and an optimizer of its own, it takes what they share detached.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.crash import is_crash
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.fix.text.argument import add_keyword, term
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward, calls_of, find_backwards
from explainer.source.loop.common_step import climbs
from explainer.source.loop.own_tensor import own_tensors
from explainer.source.loop.pair import Pair, find_pairs, graph_lines, runs
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import before, binds, block_of, reads, scope_of, statements_of

# The fact that is there where a trace saw that the loss comes of the forward of the one before.
SHARED = "traced_shared"
_OWNED = "the second loss has an optimizer of its own, which does not own what both go through; where that is to learn from both, keep the graph instead"
_TAKES_GRADIENTS = frozenset({"grad", "clip_grad_norm_", "clip_grad_value_", "clip_gradients"})
_KEEP = "Keep the graph for the losses that follow: `retain_graph=True`"
_READ = "each round reads or clips the gradients so far, so every loss keeps its own backward"
_KEPT = "the graph is held until the second call; adding the losses would need no more memory, but something between them needs the first gradients"


def _climbs_between(pair: Pair) -> bool:
    """Whether the weights climb between two backward calls, as for sharpness-aware minimisation: the second is for there."""
    block = block_of(pair.second.statement, pair.file)
    return any(climbs(one) for one in block if before(pair.first.statement, one) and before(one, pair.second.statement))


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each run of backward calls, and each loop over losses, that go through one graph."""
    if not context.has_failed:
        return
    pairs = [
        pair
        for pair in find_pairs(context.program)
        if _share_a_graph(pair, context.program)
        and not _climbs_between(pair)
        and not own_tensors(pair, context.program)
    ]
    for row in _rows([pair for pair in pairs if _may_wait(pair)]):
        yield Proposal(edits=_sum(row), culprit=_culprit(row[0]), belief=_belief(row, context))
    for pair in pairs:
        if not any(runs(owned, pair.second, pair.shared, context.program) for _, owned in pair.steps) or not pair.steps:
            cut = _detached(pair, context.program)
            if cut:
                yield Proposal(
                    edits=cut,
                    culprit=culprit_of(
                        pair.file,
                        pair.second.call,
                        "trains what the first loss's optimizer owns, and its graph is used up",
                    ),
                    belief=_belief([pair], context),
                    applicability="unsafe",
                    because=_OWNED,
                    title="Give the second loss what both share detached: what the first optimizer owns learns from its own loss",
                )
            yield replace(_kept(pair, context), applicability="display") if cut else _kept(pair, context)
    for one in find_backwards(context.program):
        yield from _of_loop(one, context)


def _detached(pair: Pair, program: Program) -> tuple[Edit, ...]:
    """`.detach()` on what the second loss's own networks are given of what the first one's optimizer owns."""
    owners = [owned for _, owned in (*pair.steps, *pair.later) if owned]
    others = {one for one in owners if not runs(one, pair.first, pair.first_lines, program)}
    owns = {one for one in owners if any(calls_of(one, line, pair.file, program) for line in pair.shared)}
    own = frozenset().union(*others)
    if not owns or not own or own & frozenset().union(*owns):
        return ()
    names = set().union(*(binds(one) for one in pair.shared))
    found: dict[int, Edit] = {}
    for line in (one for one in pair.second_lines if one not in pair.first_lines):
        for call in calls_of(own, line, pair.file, program):
            for given in (*call.args, *(one.value for one in call.keywords)):
                if dotted_name(given) in names:
                    end = pair.file.span(given)[1]
                    found[end] = Edit(file=pair.file.path, start=end, end=end, new=".detach()")
    return tuple(found[end] for end in sorted(found))


def _share_a_graph(pair: Pair, program: Program) -> bool:
    first, second = pair.first, pair.second
    is_open = bool(pair.shared) and first.retains is None and first.is_plain and second.is_plain
    return is_open and not _is_same_loss(pair) and not _is_adversarial(pair, program)


def _rows(pairs: list[Pair]) -> Iterator[list[Pair]]:
    """Pairs that follow each other, as one run: three calls are two pairs."""
    row: list[Pair] = []
    for pair in pairs:
        if row and row[-1].second.call is not pair.first.call:
            yield row
            row = []
        row.append(pair)
    if row:
        yield row


def _belief(row: list[Pair], context: Context) -> float:
    return 1.8 if any(is_crash(pair.file, pair.second.call, context) for pair in row) else 0.8


def _culprit(pair: Pair) -> Culprit:
    second = pair.file.segment(pair.second.loss)
    return culprit_of(pair.file, pair.first.call, f"frees the graph that `{second}` goes through too")


def _kept(pair: Pair, context: Context) -> Proposal:
    return Proposal(
        edits=(add_keyword(pair.file, pair.first.call, "retain_graph=True"),),
        culprit=_culprit(pair),
        belief=_belief([pair], context) - 0.7,
        applicability="unsafe",
        because=_KEPT,
        title="Keep the graph for the second backward: `retain_graph=True` on the first",
    )


def _sum(row: list[Pair]) -> tuple[Edit, ...]:
    """The first call differentiates the sum and the others go; the last one where a loss is made between."""
    file, calls = row[0].file, [row[0].first, *(pair.second for pair in row)]
    block = block_of(calls[0].statement, file)
    total = " + ".join(term(file, one.loss) for one in calls)
    places = [block.index(one.statement) for one in calls]
    kept = calls[0] if places == list(range(places[0], places[0] + len(places))) else calls[-1]
    start, end = file.span(kept.loss)
    is_bare = kept.loss in kept.call.args or _is_scaled(kept) or _has_parentheses(file, start, end)
    dropped = [remove_statement(file, one.statement) for one in calls if one is not kept]
    return (Edit(file=file.path, start=start, end=end, new=total if is_bare else f"({total})"), *dropped)


def _is_scaled(backward: Backward) -> bool:
    return backward.loss is not getattr(backward.call.func, "value", None)


def _has_parentheses(file: SourceFile, start: int, end: int) -> bool:
    return file.text[start - 1 : start] == "(" and file.text[end : end + 1] == ")"


def _may_wait(pair: Pair) -> bool:
    """Whether nothing between the two calls needs the first one's gradients, or clears them."""
    block = block_of(pair.first.statement, pair.file)
    if pair.second.statement not in block:
        return False
    between = block[block.index(pair.first.statement) + 1 : block.index(pair.second.statement)]
    names = reads(pair.first.loss, graph=False)
    for one in (node for statement in between for node in walk(statement)):
        method = getattr(one, "attr", "")
        if method in ("step", "zero_grad", "grad", "unscale_", "backward", "clip_grad_norm_", "clip_gradients"):
            return False
        if isinstance(one, ast.stmt) and binds(one) & names:
            return False
    return not any(isinstance(one, (ast.Break, ast.Continue, ast.Return)) for one in between)


def _is_same_loss(pair: Pair) -> bool:
    """Whether both calls differentiate one and the same value, which is another fault."""
    file = pair.file
    if file.segment(pair.first.loss) != file.segment(pair.second.loss):
        return False
    scope = [one for one in pair.second_lines if before(pair.first.statement, one)]
    return not scope


def _is_adversarial(pair: Pair, program: Program) -> bool:
    """Whether two optimizers own networks that both losses go through: each loss is then meant for one of them."""
    owners = {owned for _, owned in (*pair.steps, *pair.later) if owned}
    both = [
        owned for owned in owners
        if runs(owned, pair.first, pair.first_lines, program) and runs(owned, pair.second, pair.second_lines, program)
    ]  # fmt: skip
    return len(both) > 1


def _of_loop(backward: Backward, context: Context) -> Iterator[Proposal]:
    """`for loss in losses: loss.backward()` becomes one backward of the sum, where the losses share a graph."""
    file, statement = backward.file, backward.statement
    loop = file.parents.get(statement)
    if not isinstance(loop, ast.For) or loop.orelse or not backward.is_plain or backward.retains is not None:
        return
    if not is_crash(file, backward.call, context):
        return
    culprit = culprit_of(file, backward.call, "frees the graph that the losses of the loop share")
    names = {getattr(node, "attr", "") for one in loop.body for node in walk(one)}
    whole = _whole_loop(backward, loop)
    if whole:
        yield Proposal(edits=whole, culprit=culprit, belief=1.5)
    elif names & {"step", "zero_grad"} or not _is_accumulated(backward, loop, context):
        return
    elif names & _TAKES_GRADIENTS:
        keeps = add_keyword(file, backward.call, "retain_graph=True")
        yield Proposal(edits=(keeps,), culprit=culprit, belief=1.5, because=_READ, title=_KEEP)
    else:
        yield Proposal(edits=_accumulated(backward, loop, context), culprit=culprit, belief=1.5)


def _whole_loop(backward: Backward, loop: ast.For) -> tuple[Edit, ...]:
    """The loop does nothing but call backward on each element: `sum(losses).backward()`."""
    file = backward.file
    if len(loop.body) != 1 or dotted_name(backward.loss) is None or _is_scaled(backward):
        return ()
    if dotted_name(loop.target) == dotted_name(backward.loss):
        source = file.segment(loop.iter)
    elif isinstance(loop.target, ast.Tuple) and dotted_name(loop.target.elts[-1]) == dotted_name(backward.loss):
        source = file.segment(loop.iter)
        if not source.endswith(".items()"):
            return ()
        source = f"{source.removesuffix('.items()')}.values()"
    else:
        return ()
    return (edit_of(file, loop, f"sum({source}).backward()"),)


def _is_accumulated(backward: Backward, loop: ast.For, context: Context) -> bool:
    """Whether each round's loss goes through something that was made before the loop, in one step."""
    program, file = context.program, backward.file
    scope = scope_of(loop, file, program)
    # Of what a trace saw to come of one forward, the rounds may hand on the shared part: `x = stage(x)`.
    is_seen = any(one.name == SHARED for one in context.incident.facts)
    lines = () if is_seen else graph_lines(backward.loss, backward.statement, file, program)
    if scope is None or not (is_seen or any(before(one, loop) for one in lines)):
        return False
    if is_seen and context.program.names(file).function_of(loop) is not None:
        return True  # a helper that is given what one forward made: who steps is its caller's
    return file.enclosing(loop, ast.For, ast.While) is not None or _is_step(loop, scope)


def _accumulated(backward: Backward, loop: ast.For, context: Context) -> tuple[Edit, ...]:
    """The losses of the rounds are summed up, and backward comes after the loop."""
    file, scope = backward.file, scope_of(loop, backward.file, context.program)
    taken = {node.id for node in walk(scope) if isinstance(node, ast.Name)} if scope is not None else set()
    total = next(name for name in ("total_loss", "summed_loss", "sum_of_losses", "loss_sum") if name not in taken)
    indent = file.indent(loop.lineno)
    after = file.span(loop)[1]
    start = file.line_start(loop.lineno)
    # As it is written, `accelerator.backward(part)`, with the sum for the loss.
    (first, last), (low, high) = file.span(backward.statement), file.span(backward.loss)
    whole = f"{file.text[first:low]}{total}{file.text[high:last]}" if _is_scaled(backward) else f"{total}.backward()"
    return (
        Edit(file=file.path, start=start, end=start, new=f"{indent}{total} = 0.0{file.newline}"),
        edit_of(file, backward.statement, f"{total} = {total} + {term(file, backward.loss)}"),
        Edit(file=file.path, start=after, end=after, new=f"{file.newline}{indent}{whole}"),
    )


def _is_step(loop: ast.For, scope: ast.AST) -> bool:
    """Whether an optimizer steps after the loop in the same function, so that the loop belongs to one step."""
    assert isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module))
    return any(
        before(loop, one)
        and isinstance(one, ast.Expr)
        and getattr(getattr(one.value, "func", None), "attr", "") == "step"
        for one in statements_of(scope)
    )
