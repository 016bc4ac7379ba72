"""`gradfix undo`: takes applied patches back."""

from __future__ import annotations

import os
import sys

from explainer.cli.fix import DONE, REFUSED
from explainer.cli.screen import is_coloured, is_terminal
from explainer.errors import UsageError
from explainer.model.journal import APPLIED, Record, Refused
from explainer.render.visible import one_line

_NONE = "no patch is applied in this project; `gradfix history --all` lists those of others"


def run_undo(name: str | None, root: str | None, color: str, *, is_all: bool) -> int:
    """Take back the patch of that id, the last one, or all; 4 where one is refused."""
    from explainer import memory
    from explainer.cli.explain import tell_of_memory
    from explainer.workflow import undo

    if name is not None and is_all:
        raise UsageError("undo takes an ID or --all, not both")
    records = _wanted(name, root or os.getcwd(), is_all=is_all)
    if not records:
        return _refuse(Refused(reason=_NONE), color)
    status = DONE
    for record in records:
        done = undo(record)
        if isinstance(done, Refused):
            status = _refuse(done, color)
        else:
            print(f"undone {record.id}: {', '.join(_names(record))} as before {record.fix}")
            memory.note_undo(record)
    tell_of_memory()
    return status


def _wanted(name: str | None, root: str, *, is_all: bool) -> list[Record]:
    """The records to take back, the last one first."""
    from explainer.workflow import find_patch, history

    if name is not None:
        return [find_patch(name)]
    applied = [one for one in reversed(history(root)) if one.state == APPLIED]
    return applied if is_all else applied[:1]


def _refuse(refused: Refused, color: str) -> int:
    from explainer.render.difference import render_diff
    from explainer.render.mask import mask_text

    print(f"gradfix: refused: {one_line(refused.reason, 600)}", file=sys.stderr)
    diff = mask_text(refused.diff)
    sys.stdout.write(render_diff(diff, is_terminal=is_terminal(sys.stdout), is_coloured=is_coloured(color)))
    return REFUSED


def _names(record: Record) -> list[str]:
    return [one_line(os.path.relpath(one.file, record.root), 200) for one in record.files]
