"""The documentation's pages about myths and about the libraries' interfaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explainer.catalog.catalog import Catalog
from explainer.catalog.myth import MythPage
from explainer.model.interface import Change
from explainer.render.markdown import code_block, plain
from tools.site_page import cell

_CHANGE_COLUMNS = ("of", "old", "new", "added", "deprecated", "removed", "write")
_CODE_COLUMNS = ("of", "old", "new")


def myth_page(myths: Sequence[MythPage], catalog: Catalog) -> str | None:
    """The popular remedies, each with the experiment that shows what it does; None where there are none."""
    if not myths:
        return None
    users: dict[str, list[str]] = {}
    for cause in catalog.cause_ids:
        for slug in dict.fromkeys(myth.experiment for myth in catalog.cause(cause).myths if myth.experiment):
            users.setdefault(slug, []).append(cause)
    lines = ["# Myths", "", f"{len(myths)} popular remedies, each run against the gradients that were meant.", ""]
    for myth in myths:
        lines += _myth(myth, users.get(myth.slug, []))
    return "\n".join(lines)


def interface_page(changes: Sequence[Change]) -> str | None:
    """What the libraries renamed and removed, and when; None where nothing is known of it."""
    if not changes:
        return None
    lines = ["# Interfaces", "", f"{len(changes)} names that libraries changed, with the release of each change.", ""]
    for library in dict.fromkeys(change.library for change in changes):
        lines += [f"## {library}", "", f"| {' | '.join(_CHANGE_COLUMNS)} |", "| --- " * len(_CHANGE_COLUMNS) + "|"]
        lines += [_change(change) for change in changes if change.library == library]
        lines.append("")
    return "\n".join(lines)


def _myth(myth: MythPage, causes: Sequence[str]) -> Iterator[str]:
    yield from (f"## {plain(myth.remedy)} {{ #{myth.slug} }}", "", f"**{plain(myth.verdict)}**", "")
    for label, said in (
        ("The claim", myth.claim),
        ("What the experiment shows", myth.shows),
        ("Instead", myth.instead),
    ):
        yield from (f"{label}: {plain(said)}", "")
    if causes:
        yield from ("Met in " + ", ".join(f"[`{cause}`](causes/{cause}.md)" for cause in causes), "")
    yield from _folded("The experiment", myth.program, "python")
    for release, text in reversed(myth.printed):
        yield from _folded(f"What it prints, torch {release}", text, "text")


def _folded(label: str, text: str, language: str) -> Iterator[str]:
    yield from ('<details markdown="1">', f"<summary>{label}</summary>", "")
    yield from (*code_block(text.strip("\n"), language), "", "</details>", "")


def _change(change: Change) -> str:
    shown = {key: getattr(change, key) or "" for key in _CHANGE_COLUMNS}
    for key in _CODE_COLUMNS:
        shown[key] = f"`{shown[key]}`" if shown[key] else ""
    note = f" ({cell(change.note)})" if change.note else ""
    return f"| {' | '.join(cell(shown[key]) for key in _CHANGE_COLUMNS)}{note} |"
