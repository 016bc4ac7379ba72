"""Where the documentation lies on the web: the one place that says so."""

from __future__ import annotations

from collections.abc import Container

DOCUMENTATION = "https://gradfix.readthedocs.io/"


def cause_link(cause: str, unpublished: Container[str] = ()) -> str | None:
    """The page of a cause; None for one of `unpublished`, a user's own rules, which the site does not have."""
    return None if cause in unpublished else f"{DOCUMENTATION}causes/{cause}/"
