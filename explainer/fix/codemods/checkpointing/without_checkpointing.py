"""`checkpoint(layer, x, use_reentrant=False)` becomes `layer(x)`: the same values and gradients, without recomputation."""

from __future__ import annotations

from collections.abc import Iterator

from explainer.fix.clue.crash import is_crash
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.graph.uncheckpoint import checkpoint_calls, plain_call


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each call of a layer through checkpointing."""
    if not context.has_failed:
        return
    options = context.options
    for file, node in checkpoint_calls(context.program):
        why = str(options.get("why", "checkpoints its activations, which the surrounding transform does not allow"))
        yield Proposal(
            edits=tuple(plain_call(file, node)),
            culprit=culprit_of(file, node, why),
            belief=2.0 if is_crash(file, node, context) else -0.5 if "why" in options else 1.0,
        )
