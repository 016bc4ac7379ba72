"""`torch.einsum("...id,...jd->...ij", q, k)` for `"id,jd->ij"`, whose operands all have a batch before the axes that are named."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen_shape import seen_shape
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.tree import walk

_REFUSED = "the number of subscripts in the equation"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the equation on the line that raised, where the ranks of all operands were seen."""
    for file, statement in list(raised_at(context))[:1] if _REFUSED in message_of(context) else ():
        names = context.program.names(file)
        for call in (
            one for one in walk(statement) if isinstance(one, ast.Call) and names.is_call(one, "torch.einsum")
        ):
            equation = call.args[0] if call.args else None
            text = equation.value if isinstance(equation, ast.Constant) else None
            if not isinstance(equation, ast.Constant) or not isinstance(text, str) or "." in text or "->" not in text:
                continue
            left, _, right = text.replace(" ", "").partition("->")
            shapes = [seen_shape(one, file, context) for one in call.args[1:]]
            terms = left.split(",")
            if len(terms) != len(shapes) or any(shape is None for shape in shapes):
                continue
            if all(
                shape is not None and len(shape) == len(term) + 1 for term, shape in zip(terms, shapes, strict=True)
            ):
                batched = ",".join(f"...{term}" for term in terms)
                yield Proposal(
                    edits=(edit_of(file, equation, f'"{batched}->...{right}"'),),
                    culprit=culprit_of(file, equation, "names the axes of one sample, and its operands have a batch"),
                    belief=2.0,
                )
