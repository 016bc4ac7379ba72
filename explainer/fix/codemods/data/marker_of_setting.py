"""A setting names another marker than the labels have: `"ignore_index": -1` becomes 255 where void pixels are 255.

The setting stands in a configuration file, a script, a default, or in the call of the loss itself. That the refused label is a
marker is read off the program, or it is 255, which is no class where the model has fewer and something is to be ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen import seen_tensors
from explainer.fix.codemod import Context, Proposal, culprit_at
from explainer.fix.setting.edit import set_value
from explainer.model.patch import Edit
from explainer.source.data.label_marker import IGNORES, is_name_of_marker, leaves_labels_out, marks_of
from explainer.source.loss.loss import Loss, find_losses
from explainer.source.program import Program
from explainer.source.setting.flow import members_behind, settings_behind
from explainer.source.setting.python import read_python
from explainer.source.setting.setting import Setting

_REFUSED = re.compile(r"Target (-?\d+) is out of bounds")
_NAMES = re.compile(r"ignored?_(?:index|idx|label|id)", re.IGNORECASE)
_USUAL = 255  # what the masks of images hold where nobody labelled a pixel
_MANY = 200  # a model of as many classes may have one of that number


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the setting from which the loss that failed takes its marker."""
    refused = _REFUSED.search(message_of(context))
    if refused is None:
        return
    value, program = int(refused[1]), context.program
    settings = [one for one in _settings(context) if _is_number(one.value) and one.value != value]
    if not settings:
        return
    is_shown = _is_marker(value, settings, program)
    if not is_shown and not _is_usual(value, context):
        return
    for at, setting in enumerate(settings[:2]):
        edit = set_value(setting, value)
        if isinstance(edit, Edit) and isinstance(setting.value, int) and not _is_used(setting, program):
            yield Proposal(
                edits=(edit,),
                culprit=culprit_at(
                    setting.file,
                    ((setting.key or setting.span)[0], setting.span[1]),
                    f"leaves out {setting.value}, where what has no label is {value}",
                ),
                belief=(2.4 if is_shown else 1.5) - 0.2 * at,
                applicability=None if is_shown else "unsafe",
                title=f"Leave out the marker that the labels have: `{setting.name}` of {value}",
                is_origin=True,
            )


def _settings(context: Context) -> list[Setting]:
    """The settings behind `ignore_index` of the loss that failed; where that is not known, the only one of such a name."""
    program = context.program
    raised = {statement for _, statement in raised_at(context)}
    losses = [one for one in program.once(find_losses) if one.name in IGNORES]
    losses = [one for one in losses if one.file.statement(one.call) in raised] or losses
    named = [one for one in losses if leaves_labels_out(one)]
    if losses and not named:
        return []
    found = list({(one.file.path, one.span): one for loss in named for one in _behind(loss, program)}.values())
    if found:
        return found
    written = [one for document in program.documents() for one in document.settings]
    written += [one for file in program.parsed() for one in read_python(file)]
    alike = [one for one in written if _NAMES.fullmatch(one.name) and _is_number(one.value)]
    return alike if len(alike) == 1 else []


def _behind(loss: Loss, program: Program) -> list[Setting]:
    file = program.file_of(loss.made) or loss.file
    given = loss.options.get("ignore_index")
    if given is not None:
        return settings_behind(given, file, program)
    spread = [one.value for one in loss.made.keywords if one.arg is None]
    return [found for one in spread for found in members_behind(one, "ignore_index", file, program)]


def _is_marker(value: int, settings: list[Setting], program: Program) -> bool:
    """Whether the program shows that a label is a marker: in its code, or as another setting that says so by its name."""
    if any(True for _ in marks_of(value, program)):
        return True
    written = [one for document in program.documents() for one in document.settings]
    written += [one for file in program.parsed() for one in read_python(file)]
    return any(
        one.value == value and _is_number(one.value) and is_name_of_marker(one.name)
        for one in written
        if not any(one.file is other.file and one.span == other.span for other in settings)
    )


def _is_usual(value: int, context: Context) -> bool:
    """Whether a label is what masks of images hold for a void pixel, and no tensor that failed has as many classes."""
    floats = [one for one in seen_tensors(context).values() if one.dtype.startswith(("float", "bfloat"))]
    return value == _USUAL and all(size < _MANY for one in floats for size in one.shape[1:2])


def _is_used(setting: Setting, program: Program) -> bool:
    """Whether labels have the marker of the setting too, by what else the program writes: then both are to be left out."""
    assert isinstance(setting.value, int)
    return any(
        not (mark.file is setting.file and mark.file.line_of(mark.file.span(mark.node)[0]) == setting.line)
        for mark in marks_of(setting.value, program)
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
