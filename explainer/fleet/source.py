"""One object that a triage reads, as its listing describes it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A log or notebook by its path or address.

    `size` is in bytes as stored, None where unknown. `stamp` changes when the object does (time of the last change, or the
    store's tag). `changed` is the last change in UTC. A `fault` is a status and a reason for which it need not be opened.
    """

    address: str
    job: str
    size: int | None = None
    stamp: str = ""
    changed: str | None = None
    fault: tuple[str, str] | None = None

    @property
    def is_remote(self) -> bool:
        """Whether the address is one for fsspec."""
        return is_address(self.address)

    @property
    def key(self) -> str:
        """What names the object in files of ours: addresses can hold secrets."""
        return hashlib.blake2b(self.address.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()

    @property
    def version(self) -> str:
        """What is different once the object has changed."""
        return f"{self.size} {self.stamp}"


def is_address(word: str) -> bool:
    """Whether a word is `s3://...` or the like, and no path."""
    scheme, sign, _ = word.partition("://")
    return bool(sign) and scheme.replace("+", "").replace(":", "").replace("-", "").isalnum()
