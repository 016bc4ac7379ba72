"""A record of the journal as JSON shows it."""

from __future__ import annotations

import os
from typing import Any

from explainer.model.journal import Record


def plain_record(record: Record) -> dict[str, Any]:
    """A record of the journal as JSON shows it: without the bytes, paths relative to the project."""
    names = ("id", "time", "root", "command", "cause", "fix", "title", "state", "note")
    files = [os.path.relpath(one.file, record.root) for one in record.files]
    return {**{name: getattr(record, name) for name in names}, "files": files}
