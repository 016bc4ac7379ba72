"""Class weights of a loss get the dtype of its scores: `.float()` where NumPy made them float64, or where the loss takes them.

Scores in half precision beside weights in float32 are cast up at the call: a loss is computed in float32.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.blame import is_in_crash
from explainer.fix.clue.raised_loss import raised_function
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method, spell
from explainer.source.file import SourceFile
from explainer.source.loss.loss import Loss, find_losses
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.dtype import FLOAT32, float64_births, stated_dtype
from explainer.source.value.origin import origins

_OF_CLASSES = ("cross_entropy", "nll_loss")
_HALF = frozenset({"float16", "bfloat16"})


def propose(context: Context) -> Iterator[Proposal]:
    """Edits for the weights of each loss of classes that the traceback names."""
    wanted, found = (str(context.fields.get(f"{side}_dtype")) for side in ("expected", "found"))
    losses = [one for one in find_losses(context.program) if is_in_crash(one.call, one.file, context)]
    for loss in losses if context.has_failed else ():
        if not loss.takes_classes or "weight" not in loss.options:
            continue
        if wanted in _HALF:
            yield _scores(loss, wanted)
        elif wanted == "float32":
            yield from _weights(loss.options["weight"], loss.file, found, context)
    if context.has_failed and wanted == "float32" and not losses and raised_function(context) in _OF_CLASSES:
        made = list(_made(context.program))
        for weight, file in made if len(made) == 1 else ():
            yield from _weights(weight, file, found, context)


def _made(program: Program) -> Iterator[tuple[ast.expr, SourceFile]]:
    """The weights that losses of classes are made with, whatever table holds the losses."""
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            if isinstance(node, ast.Call) and names.is_call(node, "torch.nn.CrossEntropyLoss", "torch.nn.NLLLoss"):
                yield from ((one.value, file) for one in node.keywords if one.arg == "weight")


def _weights(weight: ast.expr, where: SourceFile, found: str, context: Context) -> Iterator[Proposal]:
    program = context.program
    file = program.file_of(weight) or where
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
