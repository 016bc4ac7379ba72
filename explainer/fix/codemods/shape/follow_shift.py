"""`cross_entropy(logits, target[:, 1:])` where the model itself cuts `target[:, :-1]`: it predicts the next token of each that it read.

Only where the targets have one row for each sample more than the predictions, and the loss is given them whole.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.blame import is_in_crash
from explainer.fix.clue.crash import ROWS, message_of
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.loss.loss import Loss, find_losses, unflattened
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import definitions, scope_of
from explainer.source.value.resolve import resolver_of

_CUT = re.compile(r":, ?: ?-1")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the target of the loss that failed."""
    rows = ROWS.search(message_of(context))
    if rows is None:
        return
    for loss in find_losses(context.program):
        whole = unflattened(loss.target)
        tensor = seen(whole, context)
        if tensor is None or len(tensor.shape) != 2 or not is_in_crash(loss.call, loss.file, context):
            continue
        samples, steps = tensor.shape
        if (int(rows[1]), int(rows[2])) == (samples * (steps - 1), samples * steps) and _is_cut_by_model(
            whole, loss, context.program
        ):
            is_viewed = isinstance(loss.target, ast.Call) and getattr(loss.target.func, "attr", "") == "view"
            yield Proposal(
                edits=(put_method(loss.file, whole, "[:, 1:].contiguous()" if is_viewed else "[:, 1:]"),),
                culprit=culprit_of(loss.file, loss.call, "keeps the first token, which the model predicts nothing for"),
                belief=2.6,
            )


def _is_cut_by_model(whole: ast.expr, loss: Loss, program: Program) -> bool:
    """Whether what gives the prediction is handed the same tensor, and reads all of it but the last step."""
    name = dotted_name(whole)
    statement, scope = loss.file.statement(loss.call), scope_of(loss.call, loss.file, program)
    read = {one.id for one in walk(loss.prediction) if isinstance(one, ast.Name)}
    made = [
        statement,
        *(one for each in sorted(read) if scope is not None for one in definitions(each, statement, scope)),
    ]
    calls = [one for each in made for one in walk(each) if isinstance(one, ast.Call)]
    return name is not None and any(_cuts(call, name, loss.file, program) for call in calls)


def _cuts(call: ast.Call, name: str, file: SourceFile, program: Program) -> bool:
    resolver = resolver_of(program)
    for where, owner in resolver.classes_of(Value(call.func, file)):
        method = resolver.method(owner, "forward", where)
        for parameter, given in arguments_of(call, method[1]) if method is not None else ():
            if dotted_name(given) == name and method is not None:
                return any(
                    isinstance(one, ast.Subscript)
                    and dotted_name(one.value) == parameter
                    and _CUT.fullmatch(method[0].segment(one.slice).strip("()"))
                    for one in walk(method[1])
                )
    return False
