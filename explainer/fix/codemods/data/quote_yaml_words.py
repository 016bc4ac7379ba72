"""`words: ["yes", "no", up]` for `words: [yes, no, up]`: in YAML 1.1 `yes`, `no`, `on` and `off` are booleans, whatever stands beside them.

`yes` and `on` are then one entry, and a list of six words has four.
"""

from __future__ import annotations

from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_at
from explainer.model.patch import Edit
from explainer.source.program import Program
from explainer.source.setting.setting import YAML, Setting

_WORDS = frozenset({"yes", "no", "on", "off", "y", "n"})
_WHY = "is read as {value}, as {others} of this list {are}: YAML takes it for a boolean"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each list of words in which some are read as booleans."""
    if not context.has_failed:
        return
    for words in _lists(context.program):
        first = words[0]
        others = f"{len(words) - 1} more" if len(words) > 2 else "another one"
        why = _WHY.format(value=first.value, others=others, are="are" if len(words) > 2 else "is")
        yield Proposal(
            edits=tuple(
                Edit(file=one.file.path, start=one.span[0], end=one.span[1], new=f'"{one.raw}"') for one in words
            ),
            culprit=culprit_at(first.file, first.span, why),
            belief=2.4,
        )


def _lists(program: Program) -> Iterator[list[Setting]]:
    """The words of a list that are read as booleans, at least two of them beside one that is read as text."""
    for document in program.documents():
        if document.kind != YAML:
            continue
        entries: dict[tuple[int, tuple[str, ...]], list[Setting]] = {}
        for one in document.settings:
            if one.path and one.name.isdigit():
                entries.setdefault((one.group, one.path[:-1]), []).append(one)
        for beside in entries.values():
            words = [
                one for one in beside if isinstance(one.value, bool) and one.raw.lower() in _WORDS and not one.hold
            ]
            if len(words) > 1 and any(isinstance(one.value, str) for one in beside):
                yield words
