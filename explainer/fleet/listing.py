"""The objects that the words of a command line mean: files, folders, globs, addresses; sorted, none twice.

What cannot be listed is an object with a fault, so that a row will say so.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone

from explainer.fleet.row import EMPTY, UNREADABLE
from explainer.fleet.source import Source, is_address
from explainer.ingest.source import LOG_SUFFIXES

COMPRESSED = (".gz", ".gzip", ".zst", ".zstd")
_WANTED = tuple(suffix + end for suffix in LOG_SUFFIXES for end in ("", *COMPRESSED))
_ANY_JOB = re.compile(
    r"(?:(?:local[-_]?)?rank|worker|node|stdout|stderr|output|train|main|log|out|err|attempt|\d)[-_.]?\d*",
    re.IGNORECASE,
)
_NO_LOG = f"no log in here ({', '.join('*' + one for one in LOG_SUFFIXES)}, also compressed)"


def list_sources(words: Iterable[str]) -> list[Source]:
    """All objects, in the order of their addresses.

    Raises:
        UsageError: an address needs a package that is not installed.
    """
    found: dict[str, Source] = {}
    for word in words:
        if is_address(word):
            from explainer.fleet.remote import list_remote

            listed: Iterable[Source] = list_remote(word)
        else:
            listed = _list_local(word)
        for source in listed:
            same = source.address if is_address(source.address) else os.path.abspath(source.address)
            found.setdefault(same, source)
    return sorted(found.values(), key=lambda source: source.address)


def is_log_name(name: str) -> bool:
    """Whether a folder's file is a log by its name."""
    return name.endswith(_WANTED)


def is_pattern(word: str) -> bool:
    """Whether a word is a glob."""
    return any(sign in word for sign in "*?[")


def job_of(address: str, root: str) -> str:
    """The job of an object: its first folder below `root`, or its name without suffixes.

    A name that any job's log could have (`rank3.log`, `stderr`) is none: then it is the folder's.
    """
    inside = address[len(root) :] if address.startswith(root) else os.path.basename(address)
    parts = [part for part in inside.replace(os.sep, "/").split("/") if part]
    if len(parts) > 1:
        return parts[0]
    name = job_name(parts[-1] if parts else address)
    folder = os.path.basename(os.path.dirname(address.replace(os.sep, "/")))
    return folder if folder and _ANY_JOB.fullmatch(name) else name


def job_name(name: str) -> str:
    """A file's name without what says only how it is stored."""
    for suffixes in (COMPRESSED, LOG_SUFFIXES):
        name = next((name.removesuffix(one) for one in suffixes if name.endswith(one) and name != one), name)
    return name


def faulty(address: str, status: str, why: str) -> Source:
    """An object for which a row says why it was not read."""
    return Source(address=address, job=job_name(os.path.basename(address.rstrip("/")) or address), fault=(status, why))


def utc(seconds: float) -> str:
    """A time in seconds since 1970 as ISO 8601 in UTC."""
    return datetime.fromtimestamp(int(seconds), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _list_local(word: str) -> Iterator[Source]:
    if os.path.isdir(word):
        yield from _walk(word, word)
    elif is_pattern(word) and not os.path.lexists(word):
        root = word[: min(word.find(sign) for sign in "*?[" if sign in word)]
        root = os.path.dirname(root) + os.sep if os.path.dirname(root) else ""
        paths = sorted(glob.glob(word, recursive=True))
        for path in paths:
            yield from _walk(path, root) if os.path.isdir(path) else _file(path, root)
        if not paths:
            yield faulty(word, EMPTY, "nothing matches")
    else:
        yield from _file(word, os.path.dirname(word))


def _walk(folder: str, root: str) -> Iterator[Source]:
    """The logs under a folder; a part of it that cannot be read has a row of its own."""
    failed: list[OSError] = []
    is_any = False
    for place, _, names in os.walk(folder, onerror=failed.append):
        for name in names:
            path = os.path.join(place, name)
            # A pipe or socket in a folder would be waited for without end; one that is named by hand is read.
            if is_log_name(name) and not _is_special(path):
                is_any = True
                yield from _file(path, root)
    for error in failed:
        yield faulty(str(error.filename or folder), UNREADABLE, (error.strerror or str(error)).lower())
    if not is_any and not failed:
        yield faulty(folder, EMPTY, _NO_LOG)


def _is_special(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode)


def _file(path: str, root: str) -> Iterator[Source]:
    try:
        status = os.stat(path)
    except OSError as error:
        yield faulty(path, UNREADABLE, (error.strerror or str(error)).lower())
        return
    yield Source(
        address=path,
        job=job_of(path, root),
        size=status.st_size if stat.S_ISREG(status.st_mode) else None,
        stamp=str(status.st_mtime_ns),
        changed=utc(status.st_mtime),
    )
