"""What was applied to a project, so that it can be taken back: the records of the journal, and refusals."""

from __future__ import annotations

from dataclasses import dataclass, field

INTENDED, APPLIED, UNDONE = "intended", "applied", "undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file of a patch, by its real path: its bytes before and after, and the mode that it has in both."""

    file: str
    before: bytes = field(repr=False)
    after: bytes = field(repr=False)
    mode: int

    def reversed(self) -> FileChange:
        """The change that takes this one back."""
        return FileChange(file=self.file, before=self.after, after=self.before, mode=self.mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One patch of the journal. `state` is "intended" (being written or taken back), "applied" or "undone".

    `time` is in seconds since 1970; `note` says what befell it, where that is out of the ordinary.
    """

    id: str
    time: float
    root: str
    command: str
    cause: str
    fix: str
    title: str
    state: str
    files: tuple[FileChange, ...]
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Why nothing was written, in one line; `diff` shows what stands in the way, where that is a change of a file."""

    reason: str
    diff: str = ""
