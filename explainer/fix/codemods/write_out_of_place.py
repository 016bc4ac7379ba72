"""`x += y` becomes `x = x + y`, and `x.relu_()` becomes `x = x.relu()`: the old tensor stays as autograd saved it.

Not where the write is meant for somebody else: a parameter of the function that it does not return, an element that a loop
hands out, a parameter or buffer of a module. Where another name still means the old tensor the edit is unsafe.
"""

from __future__ import annotations

from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.out_of_place import out_of_place
from explainer.fix.suspicion import suspect
from explainer.source.alias import is_aliased, is_for_others, is_read_after
from explainer.source.operation import saves_output
from explainer.source.write import AUGMENTED, METHOD, Write, find_writes

_ALIASED = "another name still means the tensor as it was before the write, and would keep the old value"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each suspicious augmented assignment or trailing-underscore method."""
    for write in find_writes(context.program):
        if write.kind not in (AUGMENTED, METHOD):
            continue
        belief = suspect(write, context)
        if belief is None or is_for_others(write, context.program):
            continue
        if context.options.get("at") == "raise" and not is_read_after(write, context.program):
            continue  # an update: out of place it would be lost
        edits = out_of_place(write)
        if not edits:
            continue
        aliased = is_aliased(write, context.program)
        yield Proposal(
            edits=edits,
            culprit=culprit_of(write.file, write.node, _why(write)),
            belief=belief - (0.5 if aliased else 0.0),
            applicability="unsafe" if aliased else None,
            because=_ALIASED if aliased else None,
        )


def _why(write: Write) -> str:
    known = [one.name for one in write.overwrites if one is not None]
    kept = [one.name for one in write.overwrites if one is not None and saves_output(one)]
    made = f", the result of {(kept or known)[0]}," if known else ""
    name = f"`{write.name}`" if write.name else "its input"
    return f"writes {name}{made} in place"
