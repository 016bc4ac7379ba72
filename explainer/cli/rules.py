"""`gradfix rules`: list, show, search the causes; print the schemas."""

from __future__ import annotations

import json
import sys

from explainer.catalog.bundle import load_catalog
from explainer.cli.screen import is_coloured, width
from explainer.errors import UsageError
from explainer.model.rule import Cause


def list_causes(family: str | None, name: str, knowledge: str | None) -> int:
    """Print the causes, of one family or of all."""
    catalog = load_catalog(knowledge)
    chosen = [cause for cause in catalog.cause_ids if family in (None, cause.partition("/")[0])]
    if not chosen:
        families = sorted({cause.partition("/")[0] for cause in catalog.cause_ids})
        raise UsageError(f"no family {family!r}; there are {', '.join(families)}")
    _print_causes([catalog.cause(cause) for cause in chosen], name)
    return 0


def search_causes(query: str, top: int, name: str, knowledge: str | None) -> int:
    """Print the causes that fit the words best; 1 where none does."""
    from explainer.catalog.search import search

    catalog = load_catalog(knowledge)
    hits = search(catalog, query, top, knowledge)
    _print_causes([catalog.cause(hit.cause) for hit in hits], name)
    if not hits and name == "text":
        print("nothing found; try other words, or `gradfix rules list`", file=sys.stderr)
    return 0 if hits else 1


def show_rule(wanted: str, knowledge: str | None, colour: str, *, is_web: bool = False) -> int:
    """Print the page of one cause, or open it in a browser."""
    from explainer.catalog.prose import page_of
    from explainer.catalog.search import find_cause

    catalog = load_catalog(knowledge)
    name = find_cause(catalog, wanted)
    if is_web:
        from explainer.cli.web import show_page

        return show_page(catalog, name, knowledge)
    page = page_of(catalog.cause(name), knowledge)
    if not is_coloured(colour):
        sys.stdout.write(page)
        return 0
    from rich.console import Console
    from rich.markdown import Markdown

    Console(width=width(), force_terminal=True).print(Markdown(page, hyperlinks=False))
    return 0


def print_schema(name: str) -> int:
    """Print the JSON schema of a report, an environment, or a rule file."""
    from explainer.cli.schema import schema_of

    json.dump(schema_of(name), sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 0


def _print_causes(causes: list[Cause], name: str) -> None:
    if name == "json":
        rows = [{"id": one.id, "title": one.title, "summary": one.summary, "kind": one.kind} for one in causes]
        print(json.dumps(rows, indent=2))
        return
    if name != "text":
        raise UsageError(f"--format {name!r}: it is text or json")
    room = max((len(one.id) for one in causes), default=0)
    for one in causes:
        line = f"{one.id:<{room}}  {one.title}"
        print(line if not sys.stdout.isatty() else line[: width()])
