"""`optimizer = accelerator.prepare(optimizer)` before the loop, where a run was seen to step an optimizer past Accelerate.

Where a class keeps it, `self.optimizer = self.accelerator.prepare(optimizer)`. A scheduler or a hook that was given the optimizer
before keeps it: what `prepare` gives back steps the same object.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.model.patch import Edit
from explainer.model.verification import STEPS_PAST
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
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
            accelerator = _accelerator(call, file)
            edit = _edit(call, optimizer, accelerator, file, context.program) if accelerator is not None else None
            if accelerator is not None:
                yield Proposal(
                    edits=(edit,) if edit is not None else (),
                    culprit=culprit_of(
                        file, call, f"steps `{optimizer}` after each batch, since `{accelerator}` has not prepared it"
                    ),
                    belief=2.0,
                )


def _edit(call: ast.Call, optimizer: str, accelerator: str, file: SourceFile, program: Program) -> Edit | None:
    """Prepares the optimizer before the loop that steps it, or where the class of what steps it keeps it."""
    loop = next(reversed(list(loops_of(call, file))), None)
    if loop is not None:
        is_own = _is_own(optimizer, loop, file)
        return insert_before(file, loop, f"{optimizer} = {accelerator}.prepare({optimizer})") if is_own else None
    owner = program.names(file).class_of(call)
    if owner is None or not optimizer.startswith("self.") or not accelerator.startswith("self."):
        return None
    kept, made = (_bound_once(name, owner, file, program) for name in (optimizer, accelerator))
    if kept is None or made is None:
        return None
    (where, value), (maker, accelerated) = kept, made
    if where is maker and start_of(accelerated) > start_of(value):
        return None  # there is no accelerator yet
    return edit_of(file, value, f"{accelerator}.prepare({file.segment(value)})")


def _bound_once(
    name: str, owner: ast.ClassDef, file: SourceFile, program: Program
) -> tuple[Function | None, ast.expr] | None:
    """The one value that the methods of a class give an attribute, but for None, and the method."""
    names = program.names(file)
    found = [
        (names.function_of(one), one.value)
        for one in walk(owner)
        if isinstance(one, ast.Assign) and [dotted_name(each) for each in one.targets] == [name]
        if not isinstance(one.value, ast.Constant)
    ]
    return found[0] if len(found) == 1 else None


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
