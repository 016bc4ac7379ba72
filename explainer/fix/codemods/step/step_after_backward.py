"""What changes weights in place moves behind the last backward that goes through them: an optimizer's step, clipping, an average.

Two losses of one step then both see the weights that their forward saw. Not for two networks that train against each other
(`separate_adversarial_losses`): there a later step would take up the other loss's gradients.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import is_crash
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, lines_of, remove_statement
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward, calls_of, cleared, find_backwards, stepped
from explainer.source.loop.common_step import shared_steps
from explainer.source.loop.ownership import owned_by
from explainer.source.loop.pair import Pair, feeds, find_pairs
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import before, block_of, lineage, scope_of, statements_of

_TOGETHER = "both losses then move the weights in one step, with the gradients of both"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each write to weights between a loss's forward and its backward."""
    if not context.has_failed:
        return
    pairs = {pair.second.call: pair for pair in find_pairs(context.program)}
    for backward in find_backwards(context.program):
        pair = pairs.get(backward.call)
        if not backward.is_plain or (pair is not None and _is_adversarial(pair, context.program)):
            continue
        shared = {one for one, _ in shared_steps(backward, context.program)}
        for statement, network in _between(backward, context.program):
            if statement in shared:  # each optimizer would take up the gradients of the other's loss
                continue
            edits = _moved(backward, pair, statement)
            if edits:
                yield Proposal(
                    edits=edits,
                    culprit=culprit_of(
                        backward.file,
                        statement,
                        f"changes the weights of `{network}` before this loss's backward reads them",
                    ),
                    belief=0.9 + (1.0 if is_crash(backward.file, backward.call, context) else 0.0),
                    applicability="unsafe" if pair is not None and stepped(statement) else None,
                    because=_TOGETHER if pair is not None and stepped(statement) else None,
                )


def _is_adversarial(pair: Pair, program: Program) -> bool:
    """Whether the second loss trains, through the stepped network, another one that is stepped later."""
    others = pair.trained_later - pair.stepped
    return bool(others) and feeds(others, pair.stepped, pair, program)


def _between(backward: Backward, program: Program) -> Iterator[tuple[ast.stmt, str]]:
    """The statements that change weights after the forward of a loss and before its backward, with the network's name."""
    file = backward.file
    lines = lineage(backward.loss, backward.statement, file, program)
    scope = scope_of(backward.call, file, program)
    block = block_of(backward.statement, file)
    for one in statements_of(scope) if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)) else ():
        if one not in block or not before(one, backward.statement):
            continue
        for network in _written(one, file, program):
            if any(before(line, one) and calls_of(frozenset({network}), line, file, program) for line in lines):
                yield one, network
                break


def _written(statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[str]:
    """The modules whose weights a statement changes."""
    optimizer = stepped(statement)
    if optimizer is not None:
        yield from sorted(owned_by(optimizer, statement, file, program))
        return
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call):
        name = dotted_name(call.func) or ""
        if name.endswith(".load_state_dict"):
            yield name.rpartition(".")[0]
        function = program.find_function(name) if name else None
        if function is not None:
            yield from _through(call, function[1], function[0])
        return
    if isinstance(statement, (ast.With, ast.For)):
        yield from _written_weights(statement)


def _written_weights(node: ast.AST) -> Iterator[str]:
    """`net` of `for p in net.parameters(): p.clamp_(...)`."""
    for loop in walk(node):
        if not isinstance(loop, ast.For) or not any(_is_write(one) for one in walk(loop)):
            continue
        for call in walk(loop.iter):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "parameters":
                name = dotted_name(call.func.value)
                if name:
                    yield name


def _is_write(node: ast.AST) -> bool:
    """Whether a node writes a tensor in place, not through `.data`, which moves no version counter."""
    if isinstance(node, ast.AugAssign):
        return not (isinstance(node.target, ast.Attribute) and node.target.attr in ("data", "grad"))
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or not func.attr.endswith("_") or func.attr.startswith("_"):
        return False
    return not (isinstance(func.value, ast.Attribute) and func.value.attr in ("data", "grad"))


def _through(call: ast.Call, function: ast.AST, file: SourceFile) -> Iterator[str]:
    """The arguments of a call whose weights the function changes."""
    assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    del file
    written = set(_written_weights(function))
    for parameter, value in zip(function.args.args, call.args, strict=False):
        name = dotted_name(value)
        if parameter.arg in written and name:
            yield name


def _moved(backward: Backward, pair: Pair | None, statement: ast.stmt) -> tuple[Edit, ...]:
    """The write behind the backward, or behind the step that follows it; gone where that step is of the same optimizer."""
    file = backward.file
    block = block_of(backward.statement, file)
    after: ast.stmt = backward.statement
    follows = list(block[block.index(backward.statement) + 1 :])
    optimizer = stepped(statement)
    edits = [remove_statement(file, statement)]
    if optimizer is None:
        after = next((one for one in follows if stepped(one)), after)
    is_again = optimizer is not None and any(stepped(one) == optimizer for one in follows)
    if not is_again:
        edits.append(insert_after(file, after, lines_of(file, statement)))
    if optimizer is not None and pair is not None:
        between = block[block.index(statement) + 1 : block.index(backward.statement)]
        edits += [remove_statement(file, one) for one in between if cleared(one) == optimizer]
    return tuple(edits)
