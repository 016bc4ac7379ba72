"""`self.net = student` becomes `self.net = copy.deepcopy(student)` where a teacher that is frozen is the student itself.

Only by what the program calls it: a teacher, a target, a moving average, a reference. What is handed over to be frozen under
another name, a backbone, is meant to be the same module. A student that is made of some of the teacher's modules, or comes out
of the same cache, gets copies of them; only where a run saw that the two share their parameters.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.import_line import imported
from explainer.source.file import SourceFile
from explainer.source.network.freeze import find_freezes
from explainer.source.network.shared_module import alias_of
from explainer.source.network.shared_part import Taken, taken_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each frozen name of a module that is another name of one that trains, or shares its parts with it."""
    if not context.has_failed:
        return
    copied: set[ast.expr] = set()
    for learns, frozen in _pairs(context):
        taken = taken_of(learns, frozen, context.program)
        if taken is not None and copied.isdisjoint(taken.values):
            copied |= set(taken.values)
            yield _copies(taken, learns, frozen)
    for freeze in find_freezes(context.program):
        found = alias_of(freeze, context.program)
        if found is None or found[1] in copied:
            continue
        file, value = found
        called, edits = imported(file, "copy", "deepcopy")
        yield Proposal(
            edits=(edit_of(file, value, f"{called}({file.segment(value)})"), *edits),
            culprit=culprit_of(file, value, f"is `{file.segment(value)}` itself and no copy: what freezes the one freezes the other"),
            belief=2.5,
        )  # fmt: skip


def _pairs(context: Context) -> Iterator[tuple[str, str]]:
    """What is to learn and what it shares its parameters with, as a run saw them: `student and teacher`."""
    for fact in context.incident.facts:
        for pair in fact.value.split(", ") if fact.name == "live_shared_modules" else ():
            learns, _, frozen = pair.partition(" and ")
            yield learns, frozen


def _copies(taken: Taken, learns: str, frozen: str) -> Proposal:
    """Deep copies of what is taken; a copy of what is frozen already trains once it is switched on."""
    file, (where, freezes) = taken.file, taken.freeze
    called, edits = imported(file, "copy", "deepcopy")
    on = ".requires_grad_(True)" if taken.is_frozen_before else ""
    place = f"{where.path.replace(chr(92), '/').rpartition('/')[2]}:{_line(where, freezes)}"
    return Proposal(
        edits=(*(edit_of(file, one, f"{called}({file.segment(one)}){on}") for one in taken.values), *edits),
        culprit=culprit_of(
            file,
            taken.values[0],
            f"gives `{learns}` the modules of `{frozen}` itself and no copies: {place} freezes both",
        ),
        belief=3.0,
        is_origin=True,
    )


def _line(file: SourceFile, node: ast.AST) -> int:
    return file.statement(node).lineno
