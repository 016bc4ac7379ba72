"""What a run was made with."""

from __future__ import annotations

from dataclasses import dataclass

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a run was made with. A part that is None was not looked at, and is not compared.

    `packages` are names and versions; `files` the program's own and those that git calls changed, with digests of their
    content; `settings` the values of configuration files by `file: key`, secrets masked; `arguments` the words after the
    program; `variables` those of the environment that steer torch; `machine` the GPUs and the driver.
    """

    python: str | None = None
    packages: Pairs | None = None
    machine: Pairs | None = None
    commit: str | None = None
    files: Pairs | None = None
    settings: Pairs | None = None
    arguments: tuple[str, ...] | None = None
    variables: Pairs | None = None
