"""`net(x)` becomes `net(x.float())` where integers come to a layer with float weights: features that were read as whole numbers.

The message says that its input is what counts; where the frame was seen live, so does the tensor that is cast. Bytes, which are
mostly images, are left alone: whether they are to be divided by 255 too is the author's to say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.precision import is_module
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_WHOLE = re.compile(r"(?:torch\.)?(?:long|long int|int|int64|int32|short|int16)", re.IGNORECASE)
_BYTES = re.compile(r"(?:torch\.)?(?:byte|unsigned char|uint8)", re.IGNORECASE)
_FLOAT = re.compile(r"(?:torch\.)?float(?:32)?", re.IGNORECASE)
_READ = (ast.Name, ast.Attribute, ast.Subscript)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one call on the line that raised which gives integers to a layer."""
    left, right = (
        str(context.fields.get(f"{side}_dtype") or context.fields.get(f"{side}_type")) for side in ("left", "right")
    )
    is_whole = _WHOLE.fullmatch(left) is not None
    if not (is_whole or _BYTES.fullmatch(left)) or not _FLOAT.fullmatch(right):
        return
    for file, statement in list(raised_at(context))[:1]:
        given = list(_given(statement, file, context))
        if len(given) != 1:
            return
        node, call = given[0]
        yield Proposal(
            edits=(put_method(file, node, ".float()"),) if is_whole else (),
            culprit=culprit_of(
                file, call, f"gives a layer with float weights `{file.segment(node)}`, which holds integers"
            ),
            belief=2.2,
        )


def _given(statement: ast.stmt, file: SourceFile, context: Context) -> Iterator[tuple[ast.expr, ast.Call]]:
    """The first arguments of calls that were seen to be integers; where nothing was seen, those that modules get."""
    calls = [
        (node.args[0], node)
        for node in walk(statement)
        if isinstance(node, ast.Call) and node.args and not _takes_ids(node, file, context)
    ]
    known = [one for one in calls if (tensor := seen(one[0], context)) is not None and tensor.is_integer]
    unseen = [one for one in calls if isinstance(one[0], _READ) and seen(one[0], context) is None]
    names = context.program.names(file)
    own = [one for one in unseen if not (names.qualified(one[1].func) or "").startswith("torch.")]
    yield from known or [one for one in own if is_module(one[1].func, file, context.program)] or own


def _takes_ids(call: ast.Call, file: SourceFile, context: Context) -> bool:
    """Whether a call looks up rows by integers, as an embedding does."""
    made = resolver_of(context.program).constructors_of(Value(call.func, file))
    named = [call.func, *(one.node.func for one in made if isinstance(one.node, ast.Call))]
    return any("mbedding" in (dotted_name(one) or "") for one in named)
