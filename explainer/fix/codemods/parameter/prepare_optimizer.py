"""`optimizer = accelerator.prepare(optimizer)` before the loop, where a run was seen to step an optimizer past Accelerate.

A scheduler or a hook that was given the optimizer before keeps it: what `prepare` gives back steps the same object.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.model.verification import STEPS_PAST
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.value.binding import bounds_of, scope_of
from explainer.source.value.lineage import loops_of

_SEEN = re.compile(rf"(\S+):(\d+) {re.escape(STEPS_PAST)}")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each step that was seen."""
    found = [one for line in context.incident.log if (one := _SEEN.search(line.text))]
    for file in context.program.parsed() if found else ():
        name = file.path.replace("\\", "/").rpartition("/")[2]
        for attribute in file.attributes.get("step", ()):
            call = file.parents.get(attribute)
            is_seen = any(one[1] == name and int(one[2]) == attribute.lineno for one in found)
            optimizer = dotted_name(attribute.value)
            if not is_seen or optimizer is None or not isinstance(call, ast.Call):
                continue
            accelerator, loop = _accelerator(call, file), next(reversed(list(loops_of(call, file))), None)
            if accelerator is None or loop is None or not _is_own(optimizer, loop, file):
                continue
            yield Proposal(
                edits=(insert_before(file, loop, f"{optimizer} = {accelerator}.prepare({optimizer})"),),
                culprit=culprit_of(
                    file, call, f"steps `{optimizer}` after each batch, since `{accelerator}` has not prepared it"
                ),
                belief=2.0,
            )


def _accelerator(call: ast.Call, file: SourceFile) -> str | None:
    """`accelerator` of the `with accelerator.accumulate(model):` around a call."""
    block = file.enclosing(call, ast.With)
    while block is not None:
        for item in block.items if isinstance(block, ast.With) else ():
            made = item.context_expr
            if isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr == "accumulate":
                return dotted_name(made.func.value)
        block = file.enclosing(block, ast.With)
    return None


def _is_own(optimizer: str, loop: ast.stmt, file: SourceFile) -> bool:
    """Whether a new binding reaches whoever steps: an attribute, or a name of the same scope; an argument would be wrapped at each call."""
    return "." in optimizer or any(one.name == optimizer for one in bounds_of(scope_of(loop, file)))
