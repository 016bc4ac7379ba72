"""Keeps a project as it was: what a watched run adds is removed, what it changes is put back."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

MAX_FILES = 50_000
MAX_COPY = 1 << 20
MAX_TOTAL = 256 << 20
_LEFT_ALONE = {
    ".git",
    ".hg",
    ".venv",
    "venv",
    "node_modules",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
}
# What people write by hand: where such a file changes during a run, its author may have, and not the run.
_BY_HAND = (".py", ".ipynb", ".yaml", ".yml", ".toml", ".json", ".sh", ".cfg", ".ini", ".md")


@dataclass(frozen=True, slots=True)
class _File:
    size: int
    changed: int
    mode: int
    data: bytes | None


class Guard:
    """The files under `root` as they are now. Small ones can be put back; of large ones a change is only told.

    Where `root` is no project but holds what others write to meanwhile (the home folder, the temporary one, a folder above
    them, one with very many files), nothing is put back: `why_not` says so. A file of the kind that people write by hand is
    copied to `kept`, a folder of its own, before it is put back or removed: it may have been saved from an editor.
    """

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._files: dict[str, _File] = {}
        self._folders: set[str] = set()
        self.kept: str | None = None
        self.why_not = _shared(self._root)
        if self.why_not is None:
            self._read()

    def _read(self) -> None:
        total = 0
        for path, status in _walk(self._root, self._folders):
            if len(self._files) >= MAX_FILES:
                self.why_not = f"{self._root} holds more than {MAX_FILES:,} files"
                return
            data = _read(path) if status.st_size <= MAX_COPY and total < MAX_TOTAL else None
            total += len(data or b"")
            self._files[path] = _File(status.st_size, status.st_mtime_ns, stat.S_IMODE(status.st_mode), data)

    def restore(self) -> tuple[str, ...]:
        """Put the project back; names what could not be put back: large files that the run changed."""
        if self.why_not is not None:
            return ()
        lost: list[str] = []
        folders: set[str] = set()
        present = dict(_walk(self._root, folders))
        for path in present.keys() - self._files.keys():
            self._keep(path)
            _remove(path)
        for folder in sorted(folders - self._folders, key=len, reverse=True):
            shutil.rmtree(folder, ignore_errors=True)
        for path, before in self._files.items():
            status = present.get(path)
            if status is not None and (status.st_size, status.st_mtime_ns) == (before.size, before.changed):
                continue
            if status is not None and before.data is not None and _read(path) != before.data:
                self._keep(path)
            if before.data is None or not _write(path, before):
                lost.append(os.path.relpath(path, self._root))
        return tuple(sorted(lost))

    def _keep(self, path: str) -> None:
        """Copy a file that a person may have written to where it can be found again."""
        if not path.endswith(_BY_HAND):
            return
        with suppress(OSError):
            if os.path.getsize(path) > MAX_COPY:
                return
            self.kept = self.kept or tempfile.mkdtemp(prefix="gradfix-kept-")
            copy = os.path.join(self.kept, os.path.relpath(path, self._root))
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy2(path, copy)


def _shared(root: str) -> str | None:
    """Why a folder is not one project's own, or None."""
    for name, place in (("home", os.path.expanduser("~")), ("temporary", tempfile.gettempdir())):
        if os.path.commonpath([root, os.path.realpath(place)]) == root:
            return f"{root} is the {name} folder, or one above it"
    return None


def _walk(root: str, folders: set[str]) -> Iterator[tuple[str, os.stat_result]]:
    """The regular files under `root`, and their folders into `folders`; nothing behind a link."""
    for here, names, files in os.walk(root):
        names[:] = [name for name in names if name not in _LEFT_ALONE]
        folders.update(os.path.join(here, name) for name in names)
        for name in files:
            path = os.path.join(here, name)
            with suppress(OSError):
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode):
                    yield path, status


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def _write(path: str, before: _File) -> bool:
    """Write a file back with its mode and times, where its content changed."""
    assert before.data is not None
    try:
        if _read(path) != before.data:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(before.data)
            os.chmod(path, before.mode)
        os.utime(path, ns=(before.changed, before.changed))
    except OSError:
        return False
    return True
