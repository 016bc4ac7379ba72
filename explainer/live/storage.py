"""The identity of a tensor's memory."""

from __future__ import annotations

from typing import Any


def storage_of(tensor: Any) -> int | None:
    """By which two views of one memory are known; None where a tensor has none: on no device, of a kind of its own."""
    try:
        return int(tensor.untyped_storage()._cdata)  # noqa: SLF001 - torch has no other name for it
    except (RuntimeError, NotImplementedError, AttributeError):
        return None
