"""`ReduceLROnPlateau` is given the number that it watches: `scheduler.step()` becomes `scheduler.step(val_loss)`.

The number that the same block has computed before the step, of those whose names fit the schedule's mode the one of an
evaluation. Where several fit, which of them is watched is the author's to say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.file import SourceFile
from explainer.source.name import bound_names
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import block_of
from explainer.source.value.resolve import resolver_of

_MISSING = "missing 1 required positional argument: 'metrics'"
_PLATEAU = "torch.optim.lr_scheduler.ReduceLROnPlateau"
_HELD_OUT = re.compile(r"(?<![a-z])(?:val|valid|validation|eval|evaluation|dev|test)(?![a-z])", re.IGNORECASE)
_SHRINKS = re.compile(r"loss|err", re.IGNORECASE)
_GROWS = re.compile(r"acc|f1|score|auc|iou|bleu|recall|precision|dice|r2|reward|return", re.IGNORECASE)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the step that failed for want of a number."""
    if _MISSING not in message_of(context):
        return
    for file, statement in list(raised_at(context))[:1]:
        for call in walk(statement):
            if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") != "step" or call.args or call.keywords:
                continue
            mode = _mode(call, file, context.program)
            names = _names(statement, file, grows=mode == "max") if mode else []
            if len(names) == 1:
                yield Proposal(
                    edits=(add_argument(file, call, names[0]),),
                    culprit=culprit_of(file, call, "steps a schedule that watches a number, and gives it none"),
                    belief=2.0,
                    applicability="unsafe",
                    because=f"where the schedule is to watch `{names[0]}`",
                )


def _mode(call: ast.Call, file: SourceFile, program: Program) -> str | None:
    """`min` or `max`, as the one schedule is made; None where it is no such schedule, or does not say."""
    assert isinstance(call.func, ast.Attribute)
    made = resolver_of(program).constructors_of(Value(call.func.value, file))
    found = [(one.file, one.node) for one in made if isinstance(one.node, ast.Call)]
    if len(found) != 1 or not program.names(found[0][0]).is_call(found[0][1], _PLATEAU):
        return None
    node = found[0][1]
    assert isinstance(node, ast.Call)
    given = next(
        (one.value for one in node.keywords if one.arg == "mode"), node.args[1] if len(node.args) > 1 else None
    )
    if given is None:
        return "min"
    return str(given.value) if isinstance(given, ast.Constant) else None


def _names(statement: ast.stmt, file: SourceFile, *, grows: bool) -> list[str]:
    """The names that the block has bound before a statement and that fit, those of an evaluation alone where there are such."""
    before = [one for one in block_of(statement, file) if one.lineno < statement.lineno]
    bound = [name for one in before if isinstance(one, ast.Assign) for name in bound_names(one) if "." not in name]
    fitting = [one for one in dict.fromkeys(bound) if bool(_GROWS.search(one)) == grows]
    held_out = [one for one in fitting if _HELD_OUT.search(one)]
    named = held_out or [one for one in fitting if grows or _SHRINKS.search(one)]
    return named or ([] if grows else list(dict.fromkeys(_sums(before))))


def _sums(statements: Sequence[ast.stmt]) -> Iterator[str]:
    """What losses are added up in: `total` of `total += loss.item()`."""
    for node in (each for one in statements for each in walk(one)):
        if not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.Add):
            continue
        is_loss = any(isinstance(one, ast.Name) and _SHRINKS.search(one.id) for one in walk(node.value))
        if is_loss and isinstance(node.target, ast.Name):
            yield node.target.id
