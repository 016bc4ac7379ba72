"""The gradient of one value a sample in respect of the inputs: `torch.autograd.grad(energy.sum(), positions)`.

Forces, scores and gradient penalties: the samples of a batch do not depend on each other, so that the gradient of their sum
holds each one's own. In respect of parameters the reduction is a decision, and nothing is proposed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import definitions, scope_of, value_of
from explainer.source.value.resolve import resolver_of

_GRAD = ("torch.autograd.grad", "torch.autograd.functional.grad")
_DEPTH = 3  # of helpers that hand the inputs on
_REDUCED = frozenset(("sum", "mean", "item", "logsumexp", "norm", "prod"))


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the call of `grad` that raised."""
    if not context.has_failed:
        return
    for file, statement in crash_places(context):
        for node in walk(statement):
            if not isinstance(node, ast.Call) or context.program.names(file).qualified(node.func) not in _GRAD:
                continue
            given = {one.arg: one.value for one in node.keywords}
            output = node.args[0] if node.args else given.get("outputs")
            source = node.args[1] if len(node.args) > 1 else given.get("inputs")
            is_weighted = len(node.args) > 2 or "grad_outputs" in given
            if output is None or source is None or is_weighted or _is_reduced(output):
                continue
            is_known = _is_input(source, statement, file, context.program) or _is_fed(
                source, output, statement, file, context.program
            )
            if isinstance(output, (ast.List, ast.Tuple)) or not is_known:
                continue
            why = f"`{file.segment(output)}` has one value for each sample, and `grad` takes one number"
            yield Proposal(edits=(put_method(file, output, ".sum()"),), culprit=culprit_of(file, node, why), belief=2.0)


def _is_reduced(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _REDUCED


def _is_input(node: ast.expr, at: ast.stmt, file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether a name stands for data that was made to require grad, rather than for parameters; also handed in by a caller."""
    if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == 1:
        node = node.elts[0]
    name, scope = dotted_name(node), scope_of(at, file, program)
    if name is None or scope is None:
        return False
    made = [value_of(one, name) for one in definitions(name, at, scope)]
    if any(_asks_for_grad(value) for value in made if value is not None) or _is_flagged(name, scope):
        return True
    if made or depth == _DEPTH or not isinstance(node, ast.Name):
        return False
    given = [one for one in resolver_of(program).behind(Value(node, file)) if isinstance(one.node, ast.expr)]
    return bool(given) and all(
        _is_input(one.node, one.file.statement(one.node), one.file, program, depth + 1) for one in given
    )


def _is_fed(source: ast.expr, output: ast.expr, at: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a network was run on it to give the output: `out = critic(mixed)`."""
    name, out, scope = dotted_name(source), dotted_name(output), scope_of(at, file, program)
    if name is None or scope is None:
        return False
    made = [value_of(one, out) for one in definitions(out, at, scope)] if out is not None else [output]
    return bool(made) and all(
        isinstance(one, ast.Call)
        and any(dotted_name(given) == name for given in one.args)
        and not (dotted_name(one.func) or "").endswith("functional_call")
        for one in made
    )


def _asks_for_grad(value: ast.expr) -> bool:
    return any(
        (isinstance(one, ast.Attribute) and one.attr == "requires_grad_")
        or (isinstance(one, ast.keyword) and one.arg == "requires_grad")
        for one in walk(value)
    )


def _is_flagged(name: str, scope: ast.AST) -> bool:
    """`x.requires_grad_()` or `x.requires_grad = True` as a statement of its own."""
    return any(
        isinstance(one, ast.Attribute)
        and one.attr in ("requires_grad_", "requires_grad")
        and dotted_name(one.value) == name
        for one in walk(scope)
    )
