"""A mask of numbers becomes one of bools where an operation takes nothing else: `scores.masked_fill(mask.bool(), value)`.

Of `~mask` the mask itself does, before it is turned round: of the integer 1 that makes -2, or 254, which is true as well. Where it was
turned round before, nothing is proposed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_REFUSED = re.compile(
    r"(?P<name>masked_\w+?)_? only supports boolean masks, but got mask with dtype (?P<dtype>[\w ]+)"
    r"|(?P<select>masked_select): expected BoolTensor for mask"
    r"|(?P<where>where) expected condition to be a boolean tensor, but got a tensor with dtype (?P<of>\w+)"
)
_REALS = frozenset({"float", "double", "half", "bfloat16"})
_ONES = "a number other than 0 and 1 counts as 1"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the mask of the failing call."""
    said = _REFUSED.search(message_of(context))
    if said is None:
        return
    name = said["name"] or said["select"] or said["where"]
    is_real = (said["dtype"] or said["of"] or "").lower() in _REALS
    for file, statement in failing_statements(context)[:1]:
        for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
            mask = _mask(call, name, file, context.program)
            if mask is not None and not _is_turned_round(mask, file, context.program):
                inner = mask.operand if isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert) else mask
                yield Proposal(
                    edits=(put_method(file, inner, ".bool()"),),
                    culprit=culprit_of(file, mask, f"is a mask of numbers, and `{name}` takes bools"),
                    belief=2.0,
                    applicability="unsafe" if is_real else None,
                    because=_ONES if is_real else None,
                )


def _mask(call: ast.Call, name: str, file: SourceFile, program: Program) -> ast.expr | None:
    """The mask that a call is given: of `torch.where` and of methods the first argument, of other functions the second."""
    called = program.names(file).qualified(call.func) or ""
    is_function = called.startswith("torch.")
    if (called.rpartition(".")[2] if is_function else getattr(call.func, "attr", "")).rstrip("_") != name:
        return None
    place = 1 if is_function and name != "where" else 0
    named = next((one.value for one in call.keywords if one.arg in ("mask", "condition")), None)
    found = call.args[place] if len(call.args) > place else named
    return None if isinstance(found, ast.Starred) else found


def _is_turned_round(mask: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a name stands for what was turned round as a number."""
    behind = [one.node for one in resolver_of(program).behind(Value(mask, file))]
    inside = [mask.operand] if isinstance(mask, ast.UnaryOp) else [mask, *behind]
    return any(isinstance(node, ast.Invert) for one in inside for node in walk(one))
