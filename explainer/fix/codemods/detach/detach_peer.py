"""What another network predicts is a target: `F.kl_div(log_q, F.softmax(other, dim=-1))` takes `F.softmax(other, dim=-1).detach()`.

As in deep mutual learning (Zhang et al., 2018), where each network learns from the predictions of the others by an optimizer of
its own: a loss that goes back through the other's prediction reads weights that the other's step has written by then. Only the
target of a loss is cut: what it is compared with keeps its graph. Of a distance either side may be the one that learns, unless
another loss compares the same two the other way round.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.loop.backward import find_backwards
from explainer.source.loss.loss import Loss, find_losses
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import sources
from explainer.source.value.provenance import provenance_of

_CUTS = frozenset({"detach", "detach_", "data", "item"})
_DIVERGENCES = frozenset({"kl_div", "KLDivLoss"})
_WHY = "goes backward through the other network as well, which its own optimizer has stepped by then"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all targets of divergences, and of distances in both directions, that are predictions with a graph."""
    if not context.has_failed or not find_backwards(context.program):
        return
    edits: dict[Edit, None] = {}
    places: list[tuple[SourceFile, ast.AST]] = []
    losses = list(context.program.once(find_losses))
    compared = {_sides(one) for one in losses}
    for loss in losses:
        is_turned = _sides(loss)[::-1] in compared and _sides(loss) != _sides(loss)[::-1]
        if (loss.name in _DIVERGENCES or is_turned) and _has_graph(loss, context.program):
            edits[put_method(loss.file, loss.target, ".detach()")] = None
            places.append((loss.file, loss.target))
    if edits:
        yield Proposal(edits=tuple(edits), culprit=culprit_of(*places[0], _WHY), belief=1.2)


def _sides(loss: Loss) -> tuple[str, str]:
    return ast.unparse(loss.prediction), ast.unparse(loss.target)


def _has_graph(loss: Loss, program: Program) -> bool:
    """Whether a graph reaches the target; probabilities that nothing cuts off are taken for a network's."""
    at = loss.file.statement(loss.call)
    if is_without_grad(at, loss.file, program):
        return False
    made = [loss.target, *(value for _, value in sources(loss.target, at, loss.file, program))]
    if any(isinstance(one, ast.Attribute) and one.attr in _CUTS for value in made for one in walk(value)):
        return False
    trace = provenance_of(program).trace(Value(loss.target, loss.file))
    are_probabilities = any(_calls_softmax(value) for value in made)
    return trace.live or (are_probabilities and not trace.chains)


def _calls_softmax(value: ast.AST) -> bool:
    return any((dotted_name(one.func) or "").endswith("softmax") for one in walk(value) if isinstance(one, ast.Call))
