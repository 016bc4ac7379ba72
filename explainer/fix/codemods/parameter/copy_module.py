"""`self.net = student` becomes `self.net = copy.deepcopy(student)` where a teacher that is frozen is the student itself.

Only by what the program calls it: a teacher, a target, a moving average, a reference. What is handed over to be frozen under
another name, a backbone, is meant to be the same module.
"""

from __future__ import annotations

from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.import_line import imported
from explainer.source.network.freeze import find_freezes
from explainer.source.network.shared_module import alias_of


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
