"""`nn.BCEWithLogitsLoss()` for `nn.CrossEntropyLoss()` where a row of labels names several classes, or none.

Such rows are no distribution over classes: as floats cross-entropy takes them without a word, and weighs a sample by the number of
its labels. Only where the live program had such rows, and nothing in the program takes one class for the answer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.blame import is_in_crash
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loss.loss import Loss, find_losses

FACT, ONE_HOT = "live_hot_rows", "1 to 1"
_FORMS = {"CrossEntropyLoss": "BCEWithLogitsLoss", "cross_entropy": "binary_cross_entropy_with_logits"}
_ONE_ANSWER = re.compile(r"\b(?:argmax|softmax|log_softmax|multinomial|Categorical|topk)\b|\.max\((?:dim=)?-?1")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loss that refused the rows; where it stands alone where the program shows which loss is meant."""
    live = context.incident.fact(FACT)
    losses = [
        one for one in find_losses(context.program) if one.takes_classes and is_in_crash(one.call, one.file, context)
    ]
    if live is None or live.value == ONE_HOT or len(losses) != 1:
        return
    (loss,) = losses
    edits = _edits(loss, context) if not _takes_one(context) else ()
    why = f"weighs the classes of a sample against each other, and a row names {live.value} of them"
    yield Proposal(edits=edits, culprit=culprit_of(loss.file, loss.call, why), belief=2.5)


def _takes_one(context: Context) -> bool:
    """Whether the program itself takes one class for the answer: then it is the rows that are in doubt."""
    return any(_ONE_ANSWER.search(file.text) for file in context.program.parsed())


def _edits(loss: Loss, context: Context) -> tuple[Edit, ...]:
    """The loss of each class by itself, and its target as floats; nothing where it has options or a name of its own."""
    func = loss.made.func
    file = context.program.file_of(func)
    is_plain = not loss.made.keywords and (loss.made is loss.call or not loss.made.args)
    if file is None or not is_plain or not isinstance(func, ast.Attribute) or func.attr not in _FORMS:
        return ()
    return (_renamed(file, func), put_method(loss.file, loss.target, ".float()"))


def _renamed(file: SourceFile, func: ast.Attribute) -> Edit:
    end = file.span(func)[1]
    return Edit(file=file.path, start=end - len(func.attr), end=end, new=_FORMS[func.attr])
