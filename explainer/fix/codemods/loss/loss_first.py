"""`return loss, logits` for `return logits, loss`: the Trainer takes the first of what a model returns for the loss."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.loss.loss import loss_at
from explainer.source.network.module import inherits_module
from explainer.source.tree import walk

_REFUSED = "implicitly created only for scalar outputs"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such `return` of a model that a Trainer of transformers trains by the loss that the model gives."""
    files = [frame.file.replace("\\", "/") for record in context.incident.exceptions for frame in record.frames]
    is_trainers = any("transformers/trainer" in one for one in files)
    if _REFUSED not in message_of(context) or not is_trainers:
        return
    if any(function.name == "compute_loss" for _, function in context.program.functions()):
        return
    for file, function in context.program.functions():
        owner = context.program.names(file).class_of(function)
        if function.name != "forward" or owner is None or not inherits_module(owner, file, context.program):
            continue
        for node in walk(function):
            if not isinstance(node, ast.Return) or not isinstance(node.value, ast.Tuple):
                continue
            parts = node.value.elts
            losses = [one for one in parts if _is_loss(one, file, context)]
            if len(losses) == 1 and losses[0] is not parts[0]:
                order = [losses[0], *(one for one in parts if one is not losses[0])]
                text = ", ".join(file.segment(one) for one in order)
                is_open = not file.segment(node.value).startswith("(")
                yield Proposal(
                    edits=(edit_of(file, node.value, text if is_open else f"({text})"),),
                    culprit=culprit_of(
                        file, node, f"returns `{file.segment(parts[0])}` first, which the Trainer takes for the loss"
                    ),
                    belief=2.0,
                )


def _is_loss(node: ast.expr, file: SourceFile, context: Context) -> bool:
    if isinstance(node, ast.Call):
        return loss_at(node, file, context.program) is not None
    return isinstance(node, ast.Name) and "loss" in node.id.lower()
