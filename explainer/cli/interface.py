"""`gradfix rules interfaces`: what the libraries renamed, moved, removed and added."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict

from explainer.catalog.bundle import load_catalog
from explainer.catalog.interface import find_changes
from explainer.errors import UsageError
from explainer.model.interface import Change


def search_interfaces(words: str, name: str, knowledge: str | None) -> int:
    """Print the changes that hold every word; 1 where none does."""
    if name not in ("text", "json"):
        raise UsageError(f"--format {name!r}: it is text or json")
    found = find_changes(load_catalog(knowledge), words)
    if name == "json":
        print(json.dumps([_row(one) for one in found], indent=2))
    else:
        for one in found:
            print("\n".join(_lines(one)))
        if not found:
            print("nothing found; try a part of the name", file=sys.stderr)
    return 0 if found else 1


def _row(change: Change) -> dict[str, str]:
    return {key: value for key, value in asdict(change).items() if value is not None}


def _lines(change: Change) -> Iterator[str]:
    name = f"{change.old} -> {change.new}" if change.old and change.new else change.old or change.new
    dates = (("added", change.added), ("deprecated", change.deprecated), ("removed", change.removed))
    when = ", ".join(f"{verb} {release}" for verb, release in dates if release)
    yield f"{change.library}  {change.of}: {name}  ({change.kind}; {when})"
    label = "write" if change.old else f"before {change.added}"
    yield f"    {label}: {change.write}"
    if change.note:
        yield f"    {change.note}"
