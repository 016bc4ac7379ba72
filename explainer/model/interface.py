"""What changed in a library's interface, and from which release on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A name of a library that went, came, or was replaced by another.

    `of` is the class, function or module that `old` belongs to. `new` belongs to it too, unless it is dotted: then it is
    a place of its own, as `SFTConfig.packing`. `added` is the release that first has `new`, `removed` the one that first
    lacks `old`. `write` is what to write instead; where that depends on the value, each of `becomes` is `"0|None -> written"`:
    the values, `*` for all others, and the arguments for them, `@` for the value, or nothing. `checked` says how it is known:
    "run" or "source".
    """

    library: str
    kind: str
    of: str
    old: str | None = None
    new: str | None = None
    added: str | None = None
    deprecated: str | None = None
    removed: str | None = None
    write: str
    becomes: Sequence[str] = ()
    note: str | None = None
    checked: str

    @property
    def new_place(self) -> tuple[str, str]:
        """What `new` belongs to, and its name there."""
        owner, _, name = (self.new or "").rpartition(".")
        return owner or self.of, name
