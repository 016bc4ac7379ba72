"""Class weights of a loss get the dtype of its scores: `.float()` where NumPy made them float64, or where the loss takes them.

Scores in half precision beside weights in float32 are cast up at the call: a loss is computed in float32.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.blame import is_in_crash
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method, spell
from explainer.source.loss.loss import Loss, find_losses
from explainer.source.value.binding import Value
from explainer.source.value.dtype import FLOAT32, float64_births, stated_dtype
from explainer.source.value.origin import origins

_HALF = frozenset({"float16", "bfloat16"})


def propose(context: Context) -> Iterator[Proposal]:
    """Edits for the weights of each loss of classes that the traceback names."""
    wanted, found = (str(context.fields.get(f"{side}_dtype")) for side in ("expected", "found"))
    for loss in find_losses(context.program) if context.has_failed else ():
        is_named = is_in_crash(loss.call, loss.file, context)
        if not loss.takes_classes or not is_named or "weight" not in loss.options:
            continue
        if wanted in _HALF:
            yield _scores(loss, wanted)
        elif wanted == "float32":
            yield from _weights(loss, found, context)


def _weights(loss: Loss, found: str, context: Context) -> Iterator[Proposal]:
    program, weight = context.program, loss.options["weight"]
    file = program.file_of(weight) or loss.file
    value = Value(node=weight, file=file)
    made = [one for one in origins(value, program) if isinstance(one.node, ast.Call)]
    if any(
        stated_dtype(one.node, program.names(one.file)) == FLOAT32 for one in made if isinstance(one.node, ast.Call)
    ):
        return
    births = list(float64_births(value, program))
    for birth in births:
        at = birth.value
        spelled = spell(program.names(at.file), "numpy.float32")
        yield Proposal(
            edits=(put_method(at.file, at.node, f".astype({spelled})" if birth.is_array else ".float()"),),
            culprit=culprit_of(at.file, at.node, "makes class weights in float64"),
            belief=1.5,
        )
    why = f"the class weights are {found}, the scores float32"
    yield Proposal(edits=(put_method(file, weight, ".float()"),), culprit=culprit_of(file, weight, why), belief=0.8)


def _scores(loss: Loss, wanted: str) -> Proposal:
    why = f"`{loss.name}` is given scores in {wanted} and class weights in another dtype"
    return Proposal(
        edits=(put_method(loss.file, loss.prediction, ".float()"),),
        culprit=culprit_of(loss.file, loss.call, why),
        belief=1.0,
    )
