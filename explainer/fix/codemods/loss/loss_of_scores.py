"""A loss on probabilities that is given scores becomes the one that takes scores: `nn.BCELoss()`, `nn.BCEWithLogitsLoss()`.

Only where the live program was seen to give it finite values outside 0 to 1, and the model is not seen to bound them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loss.loss import loss_at
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.flow import flow_of
from explainer.source.value.resolve import resolver_of

_FORMS = {
    "BCELoss": "BCEWithLogitsLoss",
    "binary_cross_entropy": "binary_cross_entropy_with_logits",
}
# Values that were bounded otherwise are meant as something else than scores.
_BOUNDED = re.compile(r"tanh|relu|clamp|softmax|sigmoid|hardtanh|gelu|softplus", re.IGNORECASE)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loss of the failing line: where its class is made, or its function is called."""
    if context.incident.fact("live_scores") is None:
        return
    seen: set[ast.AST] = set()
    for file, statement in crash_places(context):
        for call in walk(statement):
            loss = loss_at(call, file, context.program) if isinstance(call, ast.Call) else None
            if loss is None or not isinstance(call, ast.Call):
                continue
            name = loss.made.func
            if _form(name) is not None and name not in seen and not _is_bounded(loss.prediction, file, context):
                seen.add(name)
                yield _proposal(context.program.file_of(name) or file, name)


def _form(node: ast.expr) -> str | None:
    # A bare name is imported as it is, and its successor would not be.
    return _FORMS.get(node.attr) if isinstance(node, ast.Attribute) else None


def _is_bounded(prediction: ast.expr, file: SourceFile, context: Context) -> bool:
    """Whether what a prediction is computed by ends in a function that bounds it, as far as that is written."""
    resolver = resolver_of(context.program)
    for one in [Value(prediction, file), *resolver.behind(Value(prediction, file))]:
        call = one.node
        if not isinstance(call, ast.Call):
            continue
        if _BOUNDED.search(ast.unparse(call.func)):
            return True
        target = flow_of(context.program).target_of(call, one.file)
        returned = (
            [each.value for each in walk(target[1]) if isinstance(each, ast.Return)] if target is not None else []
        )
        if any(isinstance(each, ast.Call) and _BOUNDED.search(ast.unparse(each.func)) for each in returned):
            return True
    return False


def _proposal(file: SourceFile, node: ast.expr) -> Proposal:
    new = _form(node) or ""
    end = file.span(node)[1]
    old = node.attr if isinstance(node, ast.Attribute) else ""
    return Proposal(
        edits=(Edit(file=file.path, start=end - len(old), end=end, new=new),),
        culprit=culprit_of(file, node, "takes probabilities, and is given scores"),
        belief=2.5,
        because="it is the sigmoid and the loss in one; a score is positive where a probability is above 0.5",
        title=f"Take the loss that takes scores: `{new}`",
    )
