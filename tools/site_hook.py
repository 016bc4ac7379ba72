"""The hook of mkdocs: adds the pages that are made from `knowledge/`, the command line and the docstrings."""

from __future__ import annotations

import os
import sys
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)  # mkdocs loads this file by its path

from mkdocs.structure.files import File, Files  # noqa: E402

from explainer.catalog.bundle import load_catalog  # noqa: E402
from explainer.catalog.catalog import Catalog  # noqa: E402
from explainer.catalog.interface import changes  # noqa: E402
from explainer.catalog.myth import read_myths  # noqa: E402
from explainer.render.link import DOCUMENTATION  # noqa: E402
from tools import site_page, site_reference, site_table  # noqa: E402

_COPIED = {"write-a-cause.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}


def on_config(config: Any) -> Any:
    """Set the site's address, and the navigation of the pages that are made."""
    config.site_url = DOCUMENTATION
    catalog = load_catalog()
    entries = config.nav or []
    for entry in entries:
        if isinstance(entry, dict) and entry.get("Causes") == "causes/index.md":
            entry["Causes"] = _navigation(catalog)
    pages = make_pages(os.path.join(ROOT, "knowledge"), catalog)
    config.nav = [entry for entry in entries if _is_there(entry, pages, config.docs_dir)]
    config.extra["pages"] = pages
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made."""
    for path, text in config.extra.pop("pages").items():
        files.append(File.generated(config, path, content=text))
    return files


def make_pages(folder: str, catalog: Catalog) -> dict[str, str]:
    """Every page that is made, by its path in the documentation."""
    pages = {**dict(site_page.cause_pages(folder, catalog)), **dict(site_page.family_pages(catalog))}
    pages["messages.md"] = site_page.message_page(catalog)
    tables = {
        "myths.md": site_table.myth_page(read_myths(), catalog),
        "interfaces.md": site_table.interface_page(tuple(changes(catalog))),
    }
    pages.update({path: text for path, text in tables.items() if text is not None})
    pages["reference/commands.md"] = site_reference.command_page()
    pages["reference/python.md"] = site_reference.library_page()
    for path, source in _COPIED.items():
        with open(os.path.join(ROOT, source), encoding="utf-8") as file:
            pages[path] = file.read()
    return pages


def _navigation(catalog: Catalog) -> list[Any]:
    entries: list[Any] = ["causes/index.md"]
    for family in site_page.families(catalog):
        names = [name for name in catalog.cause_ids if name.startswith(f"{family}/")]
        slugs = [{name.partition("/")[2]: f"causes/{name}.md"} for name in names]
        entries.append({family: [f"causes/{family}/index.md", *slugs]})
    return entries


def _is_there(entry: Any, pages: dict[str, str], docs: str) -> bool:
    """Whether an entry of the navigation has its page: the tables appear when `knowledge/` has them."""
    target = next(iter(entry.values())) if isinstance(entry, dict) else entry
    return not isinstance(target, str) or target in pages or os.path.isfile(os.path.join(docs, target))
