"""The prose of a cause: its README, and what a page shows where that is missing."""

from __future__ import annotations

import os

from explainer.catalog.place import knowledge_folder
from explainer.model.rule import Cause, Myth


def read_prose(cause: str, extra: str | None = None) -> str | None:
    """The README of a cause, from the folder `extra` or from the rules that come with gradfix; None for none."""
    for folder in (extra, knowledge_folder()):
        if folder is None:
            continue
        try:
            with open(os.path.join(folder, *cause.split("/"), "README.md"), encoding="utf-8") as file:
                return file.read()
        except OSError:
            continue
    return None


def page_of(cause: Cause, extra: str | None = None) -> str:
    """A cause as one Markdown page: its prose, its fixes, what not to do, what it is taken for."""
    prose = read_prose(cause.id, extra) or f"# {cause.title}\n\n{cause.summary}\n"
    lines = [prose.rstrip(), "", f"`{cause.id}`, {cause.kind}, since {cause.since}"]
    if cause.myths:
        lines += ["", "## What not to do", "", *(f"- {myth.remedy}: {myth.why}{_shown(myth)}" for myth in cause.myths)]
    if cause.look_alikes:
        lines += ["", "## Look-alikes", "", *(f"- `{one.cause}`: {one.decides}" for one in cause.look_alikes)]
    if cause.proves_not:
        lines += ["", f"What a match does not prove: {cause.proves_not}"]
    return "\n".join(lines) + "\n"


def _shown(myth: Myth) -> str:
    return f" (`gradfix rules myths {myth.experiment}`)" if myth.experiment else ""
