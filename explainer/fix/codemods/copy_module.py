"""`self.net = student` becomes `self.net = copy.deepcopy(student)` where a teacher that is frozen is the student itself.

Only by what the program calls it: a teacher, a target, a moving average, a reference. What is handed over to be frozen under
another name, a backbone, is meant to be the same module.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.import_line import imported
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.freeze import Freeze, find_freezes
from explainer.source.network.module import is_module, trained_constructors
from explainer.source.program import Program
from explainer.source.value.binding import Value, bounds_of, scope_of
from explainer.source.value.resolve import resolver_of

MEANT_APART = re.compile(
    r"teacher|target|(?<![a-z])ema(?![a-z])|moving_?average|momentum|refer|(?<![a-z])ref(?![a-z])|shadow|anchor|snapshot|old_|_old|polyak",
    re.IGNORECASE,
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each frozen name of a module that is another name of one that trains."""
    if not context.has_failed:
        return
    for freeze in find_freezes(context.program):
        found = alias_of(freeze, context.program)
        if found is None:
            continue
        file, value = found
        called, edits = imported(file, "copy", "deepcopy")
        yield Proposal(
            edits=(edit_of(file, value, f"{called}({file.segment(value)})"), *edits),
            culprit=culprit_of(file, value, f"is `{file.segment(value)}` itself and no copy: what freezes the one freezes the other"),
            belief=2.5,
        )  # fmt: skip


def alias_of(freeze: Freeze, program: Program) -> tuple[SourceFile, ast.expr] | None:
    """Where a frozen name that is meant to be another module is bound to one that an optimizer gets; None where it is its own."""
    name = dotted_name(freeze.owner)
    if freeze.is_on or name is None or name == "self":
        return None
    owner = program.names(freeze.file).class_of(freeze.statement)
    if MEANT_APART.search(f"{name} {owner.name if owner is not None and name.startswith('self.') else ''}") is None:
        return None
    made = {one.node for one in resolver_of(program).constructors_of(Value(freeze.owner, freeze.file))}
    if not made & trained_constructors(program):
        return None
    bound = [one for one in bounds_of(scope_of(freeze.statement, freeze.file)) if one.name == name and not one.fills]
    values = [one.node for one in bound if dotted_name(one.node) is not None]
    is_plain = len(bound) == 1 and len(values) == 1 and is_module(Value(values[0], freeze.file), program)
    return (freeze.file, values[0]) if is_plain else None
