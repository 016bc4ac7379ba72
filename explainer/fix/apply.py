"""Writes the files of a fix, all or none, and refuses where that is not its place.

A file is replaced whole: its bytes outside of the edits come from the patch, which holds them all. Its mode, owner and
attributes stay; its time of change is new, as after any edit.
"""

from __future__ import annotations

import csv
import glob
import os
import re
import stat
from collections.abc import Callable, Sequence

from explainer.disk import replace_file, stage_file, swap_in, temporary_of
from explainer.fix.splice import unified_diff
from explainer.model.journal import FileChange, Refused
from explainer.model.patch import FilePatch
from explainer.source.place import is_inside

_ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")
_INSTALLED = re.compile(r"/(?:site-packages|dist-packages)/|/lib(?:64)?/python3(?:\.\d+)?/")


def read_changes(files: Sequence[FilePatch], root: str) -> tuple[FileChange, ...] | Refused:
    """The changes that a patch makes in the project at `root` as it is now, or why it is refused. Nothing is written."""
    changes = []
    for patch in files:
        real = os.path.realpath(patch.file)
        reason = _why_not_here(patch.file, real, root) or _why_not_writable(real)
        if reason:
            return Refused(reason=f"{_short(patch.file, root)} {reason}")
        mode = stat.S_IMODE(os.stat(real).st_mode)
        changes.append(FileChange(file=real, before=patch.before, after=patch.after, mode=mode))
    return _why_changed(changes, root) or tuple(changes)


def check_changes(changes: Sequence[FileChange], root: str) -> Refused | None:
    """Why changes that are known by real path and mode cannot be made; None where they can."""
    patches = [FilePatch(file=one.file, before=one.before, after=one.after) for one in changes]
    found = read_changes(patches, root)
    return found if isinstance(found, Refused) else None


def write_changes(
    changes: Sequence[FileChange], root: str, token: str, is_stopped: Callable[[], bool]
) -> Refused | None:
    """Make the changes, all of them or none; why none was made, or None.

    `token` names the temporary files (`disk.temporary_of`). `is_stopped` is asked before the first file changes.

    Raises:
        OSError: a file that was changed already cannot be put back.
    """
    staged: list[str] = []
    done: list[FileChange] = []
    try:
        for change in changes:
            temporary = temporary_of(change.file, token)
            stage_file(change.file, change.after, temporary, change.mode)
            staged.append(temporary)
        if refused := _why_changed(changes, root) or (Refused(reason="interrupted") if is_stopped() else None):
            return refused
        for change in changes:
            swap_in(temporary_of(change.file, token), change.file)
            done.append(change)
    except OSError as error:
        for change in done:
            replace_file(change.file, change.before, temporary_of(change.file, token), change.mode)
        return Refused(reason=f"cannot be written: {error.strerror or error}; nothing was changed")
    else:
        return None
    finally:
        for temporary in staged:
            if os.path.lexists(temporary):
                os.unlink(temporary)


def _why_not_here(path: str, real: str, root: str) -> str | None:
    """Why a file is none that gradfix may change; None where it is one of the project's own."""
    if not real.startswith(root.rstrip(os.sep) + os.sep):
        is_link = os.path.abspath(path) != real and os.path.abspath(path).startswith(root.rstrip(os.sep) + os.sep)
        return f"is a link that leads out of the project, to {real}" if is_link else f"lies outside of {root}"
    if _INSTALLED.search(real) or not is_inside(real, root) or _is_installed(real, root):
        return "belongs to an installed package"
    return None


def _is_installed(real: str, root: str) -> bool:
    """Whether a file lies in an environment inside the project, or a package's own record lists it (`pip --target`)."""
    folder = os.path.dirname(real)
    while True:
        if folder != root and any(os.path.exists(os.path.join(folder, mark)) for mark in _ENVIRONMENT_MARKS):
            return True
        name = os.path.relpath(real, folder).replace(os.sep, "/")
        if any(_is_listed(name, record) for record in glob.glob(f"{glob.escape(folder)}/*.dist-info/RECORD")):
            return True
        if folder == root:
            return False
        folder = os.path.dirname(folder)


def _is_listed(name: str, record: str) -> bool:
    try:
        with open(record, encoding="utf-8", newline="") as file:
            return any(row and row[0] == name for row in csv.reader(file))
    except (OSError, ValueError, csv.Error):
        return True  # a package's record that cannot be read: unsure, so nothing is changed


def _why_not_writable(real: str) -> str | None:
    try:
        status = os.lstat(real)
    except OSError as error:
        return f"cannot be read: {(error.strerror or str(error)).lower()}"
    folder = os.path.dirname(real)
    if not stat.S_ISREG(status.st_mode):
        return "is no regular file"
    # A file without write permission is replaced like any other and keeps its mode: the folder decides, as for `mv`.
    if not os.access(folder, os.W_OK):
        return "lies in a read-only folder"
    if status.st_nlink > 1:
        return f"has {status.st_nlink} hard links; the others would keep the old text"
    return None


def _why_changed(changes: Sequence[FileChange], root: str) -> Refused | None:
    """The first file that no longer holds the bytes that were read, with what changed in it."""
    for change in changes:
        name = _short(change.file, root)
        try:
            with open(change.file, "rb") as file:
                now = file.read()
        except OSError as error:
            return Refused(reason=f"{name} cannot be read: {(error.strerror or str(error)).lower()}")
        if now != change.before:
            return Refused(reason=f"{name} has changed since", diff=_difference(change.before, now, name))
    return None


def _difference(before: bytes, now: bytes, name: str) -> str:
    return unified_diff(before.decode("utf-8", "replace"), now.decode("utf-8", "replace"), name)


def _short(path: str, root: str) -> str:
    return path.removeprefix(root.rstrip(os.sep) + os.sep)
