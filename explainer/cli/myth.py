"""`gradfix rules myths`: the popular remedies, or one of them with its experiment."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from explainer.catalog.bundle import load_catalog
from explainer.catalog.catalog import Catalog
from explainer.catalog.myth import MythPage, read_myths
from explainer.cli.screen import width
from explainer.errors import UsageError
from explainer.render.wrap import wrap

_LABEL = 9


def list_myths(name: str, knowledge: str | None) -> int:
    """Print all myths: slug, verdict, remedy."""
    pages, causes = _read(name, knowledge)
    if name == "json":
        print(json.dumps([_plain(page, causes) for page in pages], indent=2))
        return 0
    room = max((len(page.slug) for page in pages), default=0)
    for page in pages:
        line = f"{page.slug:<{room}}  {page.verdict:<15}  {page.remedy}"
        print(line if not sys.stdout.isatty() else line[: width()])
    return 0


def show_myth(wanted: str, name: str, knowledge: str | None) -> int:
    """Print one myth with its experiment and what that printed."""
    pages, causes = _read(name, knowledge)
    page = _resolve(pages, wanted)
    if name == "json":
        own = {"path": page.path, "program": page.program, "printed": dict(page.printed)}
        print(json.dumps({**_plain(page, causes), **own}, indent=2))
        return 0
    sys.stdout.write("\n".join(_text(page, causes.get(page.slug, []))) + "\n")
    return 0


def _read(name: str, knowledge: str | None) -> tuple[tuple[MythPage, ...], dict[str, list[str]]]:
    if name not in ("text", "json"):
        raise UsageError(f"--format {name!r}: it is text or json")
    catalog = load_catalog(knowledge)
    return read_myths(knowledge), _causes(catalog)


def _causes(catalog: Catalog) -> dict[str, list[str]]:
    """The causes that name each experiment."""
    found: dict[str, list[str]] = {}
    for cause in catalog.cause_ids:
        for slug in dict.fromkeys(myth.experiment for myth in catalog.cause(cause).myths if myth.experiment):
            found.setdefault(slug, []).append(cause)
    return found


def _resolve(pages: tuple[MythPage, ...], wanted: str) -> MythPage:
    """The myth that `wanted` names, or the one that it is a part of."""
    named = [page for page in pages if page.slug == wanted]
    parts = named or [page for page in pages if wanted and wanted in page.slug]
    if len(parts) == 1:
        return parts[0]
    from rapidfuzz import process

    slugs = [page.slug for page in pages]
    near = [page.slug for page in parts[:5]] or [found[0] for found in process.extract(wanted, slugs, score_cutoff=50)]
    hint = f"; did you mean {', '.join(near[:3])}?" if near else "; `gradfix rules myths` shows them"
    raise UsageError(f"no myth {wanted!r}{hint}")


def _plain(page: MythPage, causes: dict[str, list[str]]) -> dict[str, Any]:
    keys = ("slug", "remedy", "claim", "verdict", "shows", "instead", "since")
    return {**{key: getattr(page, key) for key in keys}, "causes": causes.get(page.slug, [])}


def _text(page: MythPage, causes: list[str]) -> Iterator[str]:
    yield from wrap(page.remedy, width())
    yield f"{page.slug}  {page.verdict}"
    yield ""
    rows = (("hope", page.claim), ("shown", page.shows), ("instead", page.instead), ("met in", ", ".join(causes)))
    for label, text in rows:
        for number, line in enumerate(wrap(text, max(width() - _LABEL, 24)) if text else ()):
            yield f"{label if number == 0 else '':<{_LABEL}}{line}"
    yield from ("", f"{page.path}:", "", *_indented(page.program))
    for release, text in page.printed:
        yield from ("", f"printed, torch {release}:", "", *_indented(text))


def _indented(text: str) -> Iterator[str]:
    yield from (f"    {line}" if line else "" for line in text.rstrip("\n").split("\n"))
