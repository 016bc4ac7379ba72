"""Objects behind an address (`s3://`, `gs://`, `hf://`, `memory://`), through fsspec: listed and opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date
from typing import Any, BinaryIO

from explainer.errors import UsageError
from explainer.fleet.listing import faulty, is_log_name, is_pattern, job_of, utc
from explainer.fleet.row import EMPTY, UNREADABLE
from explainer.fleet.source import Source

_CHANGED = ("mtime", "LastModified", "last_modified", "updated", "timeModified", "created")
_TAGS = ("ETag", "etag", "md5Hash", "content_md5", "checksum", "sha256", "blob_id", "oid")


def list_remote(word: str) -> Iterator[Source]:
    """The objects of an address, of all that lie below it, or of a glob.

    Raises:
        UsageError: fsspec, or what it needs for this kind of address, is not installed.
    """
    try:
        found = list(_list(word))
    except ImportError as error:
        raise UsageError(f"{word}: {_missing(error)}") from None
    except Exception as error:  # noqa: BLE001 - a store's client raises what it likes; the row says what it was
        found = [faulty(word, UNREADABLE, describe(error))]
    yield from found


def open_remote(address: str) -> BinaryIO:
    """The object's bytes, read in blocks as they are asked for."""
    import fsspec

    stream: BinaryIO = fsspec.open(address, "rb", compression=None).open()
    return stream


def describe(error: BaseException) -> str:
    """An error of a store or a reader, in one line."""
    text = " ".join(str(error).split())[:300]
    if isinstance(error, FileNotFoundError):
        return "no such file or directory"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _missing(error: ImportError) -> str:
    if error.name == "fsspec":
        return "addresses are read with fsspec: pip install 'gradfix[fleet]'"
    return f"{' '.join(str(error).split())} (fsspec reads this kind of address with another package)"


def _list(word: str) -> Iterator[Source]:
    from fsspec.core import url_to_fs

    system, path = url_to_fs(word)
    if is_pattern(path):
        entries = system.glob(path, detail=True)
        root = path[: min(path.find(sign) for sign in "*?[" if sign in path)].rpartition("/")[0]
        chosen = {name: info for name, info in entries.items() if info.get("type") != "directory"}
        why = "nothing matches"
    elif system.isdir(path):
        root = path
        entries = system.find(path, detail=True)
        chosen = {name: info for name, info in entries.items() if is_log_name(name)}
        why = "no log in here"
    else:
        root = os.path.dirname(path)
        chosen, why = {path: system.info(path)}, ""
    for name, info in chosen.items():
        yield _source(system.unstrip_protocol(name), job_of(name, root), info)
    if not chosen:
        yield faulty(word, EMPTY, why)


def _source(address: str, job: str, info: dict[str, Any]) -> Source:
    changed = next((info[name] for name in _CHANGED if info.get(name) is not None), None)
    tag = next((str(info[name]) for name in _TAGS if info.get(name)), "")
    size = info.get("size")
    return Source(
        address=address,
        job=job,
        size=int(size) if size is not None else None,
        stamp=tag or str(changed or ""),
        changed=_utc(changed),
    )


def _utc(changed: Any) -> str | None:
    if isinstance(changed, (int, float)):
        return utc(changed)
    if isinstance(changed, date) and hasattr(changed, "timestamp"):
        return utc(changed.timestamp())
    return str(changed)[:19].rstrip("Z") + "Z" if isinstance(changed, str) and len(changed) >= 19 else None
