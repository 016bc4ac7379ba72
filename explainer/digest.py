"""Short digests: names for contents that are not to be kept themselves."""

from __future__ import annotations

_BYTES = 6


def digest(data: str | bytes) -> str:
    """Twelve hexadecimal digits: two contents are one where theirs are.

    Example:
        >>> digest("train.py")
        '1fbd3e0ed1a4'
    """
    try:
        from _blake2 import blake2b  # what hashlib gives out, without its 3 ms for OpenSSL
    except ImportError:
        from hashlib import blake2b
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    return str(blake2b(raw, digest_size=_BYTES).hexdigest())
