"""What a fix changes: edits of files, and the patch that they make together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Puts `new` in place of the characters from `start` to `end` of a file's decoded text.

    `file` is an absolute path. In a notebook, `cell` is the index of the code cell (from 0, all cells counted) in whose
    source the offsets count; None everywhere else.
    """

    file: str
    start: int
    end: int
    new: str
    cell: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch:
    """One file before and after: all of its bytes, so that what was read can be compared with what is there."""

    file: str
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """The files that a fix changes, and the unified diff that shows it, paths relative to the project's root."""

    files: tuple[FilePatch, ...]
    diff: str
