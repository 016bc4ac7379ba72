"""The exceptions that gradfix raises.

* `GradfixError`
    - `UnreadableInput`: what was given is no text that could hold a failure (binary, empty, not there)
    - `RuleError`: a rule base that cannot be used; says which file and line
    - `SilentFailure`: a watched program trains nothing or with values that are not finite; it carries the report
    - `UsageError`: the caller's arguments exclude each other or make no sense
    - `CannotStart`: a command that is not there or cannot be executed
    - `Stopped`: a run that its caller had stopped
"""

from __future__ import annotations


class GradfixError(Exception):
    """Every error that gradfix raises on purpose; its text is one line that a user can act on."""


class UnreadableInput(GradfixError):
    """The input cannot be read as text: empty, binary, missing, or of a kind that is not supported."""


class RuleError(GradfixError):
    """A rule file that cannot be used: where it is and what is wrong with it."""


class UsageError(GradfixError):
    """Arguments that exclude each other or make no sense together."""


class CannotStart(GradfixError):
    """A command is not there or cannot be executed."""


class SilentFailure(GradfixError):
    """Training goes on and is in vain: raised inside the program where it asked to be stopped.

    `report` explains what was seen.
    """

    def __init__(self, message: str, report: object = None) -> None:
        super().__init__(message)
        self.report = report


class Stopped(GradfixError):
    """A run that its caller had stopped: the command is ended, with all that it started."""
