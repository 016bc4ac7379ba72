"""What is expanded along a new axis in the middle gets that axis first: `d.unsqueeze(1).expand(-1, n, -1)` for `d.expand(-1, n, -1)`.

`expand` puts new axes in front. Where the sizes that stay (`-1`) are as many as the tensor has axes, the others are the new ones.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.tree import walk
from explainer.source.value.number import number_of

_REFUSED = re.compile(
    r"expanded size of the tensor \(.*Target sizes: \[(?P<target>[-\d, ]+)\]\. +Tensor sizes: \[(?P<sizes>[\d, ]+)\]"
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one `expand` of the line that raised."""
    told = _REFUSED.search(message_of(context))
    if told is None:
        return
    target, count = [int(one) for one in told["target"].split(",")], len(told["sizes"].split(","))
    for file, statement in list(raised_at(context))[:1]:
        calls = [
            one
            for one in walk(statement)
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "expand"
        ]
        numbers = [[number_of(size, context.program.names(file)) for size in one.args] for one in calls]
        fit = [one for one, sizes in zip(calls, numbers, strict=True) if _is_one(sizes, target)]
        new = [at for at, size in enumerate(target) if size != -1]
        if len(fit) != 1 or len(target) - len(new) != count or not new:
            continue
        (call,) = fit
        assert isinstance(call.func, ast.Attribute)
        yield Proposal(
            edits=(put_method(file, call.func.value, "".join(f".unsqueeze({at})" for at in new)),),
            culprit=culprit_of(file, call, f"keeps {count} sizes, and has its new axes in front where it lacks {new}"),
            belief=2.5,
        )


def _is_one(sizes: list[float | None], target: list[int]) -> bool:
    """Whether sizes that are written may be those of the message."""
    return len(sizes) == len(target) and all(one in (None, told) for one, told in zip(sizes, target, strict=True))
