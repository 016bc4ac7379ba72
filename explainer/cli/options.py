"""What `gradfix explain` was asked to do."""

from __future__ import annotations

from dataclasses import dataclass

FORMATS = ("text", "json", "markdown", "html", "sarif", "github")
COLOURS = ("auto", "always", "never")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """The arguments of `gradfix explain`; their meaning is stated where `cli.app` declares them."""

    files: tuple[str, ...] = ()
    format: str = "text"
    top: int = 1
    verbose: bool = False
    probe: bool = True
    env: str | None = None
    python: str | None = None
    cause: str | None = None
    knowledge: str | None = None
    root: str | None = None
    mask: bool = True
    tracebacks_only: bool = False
    color: str = "auto"
    passthrough: bool | None = None
