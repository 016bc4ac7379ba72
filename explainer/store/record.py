"""A record of the journal as the JSON that lies on disk."""

from __future__ import annotations

import base64
import json
from typing import Any

from explainer.model.journal import FileChange, Record

SCHEMA = "gradfix.journal/1"


def record_to_json(record: Record) -> bytes:
    """The record as JSON; the bytes of its files in base64."""
    names = [name for name in Record.__dataclass_fields__ if name != "files"]
    plain: dict[str, Any] = {"schema": SCHEMA, **{name: getattr(record, name) for name in names}}
    plain["files"] = [
        {"file": one.file, "mode": one.mode, "before": _written(one.before), "after": _written(one.after)}
        for one in record.files
    ]
    return json.dumps(plain, indent=1).encode("ascii")


def record_of_json(data: bytes) -> Record:
    """The record that some JSON holds.

    Raises:
        ValueError: it is damaged, or of another release.
    """
    try:
        plain = json.loads(data)
        if plain.pop("schema") != SCHEMA:
            raise ValueError("a record of another release of gradfix")
        files = tuple(
            FileChange(file=one["file"], mode=one["mode"], before=_read(one["before"]), after=_read(one["after"]))
            for one in plain.pop("files")
        )
        return Record(files=files, **plain)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a damaged record: {error}") from error


def _written(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _read(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
