"""`gradfix rules show ID --web`: the page of a cause as a file in the user's cache folder, opened in a browser."""

from __future__ import annotations

import hashlib
import os
import sys
import webbrowser

from explainer.catalog.catalog import Catalog
from explainer.catalog.prose import read_prose
from explainer.catalog.shape import read_shapes
from explainer.errors import GradfixError
from explainer.render.page import Links, cause_page
from explainer.render.web import to_html


def show_page(catalog: Catalog, wanted: str, extra: str | None) -> int:
    """Write the page of the cause `wanted`, print where it lies, open it, and write those that it leads to.

    Raises:
        GradfixError: the cache folder cannot be written.
    """
    folder = pages_folder(extra)
    path = _write(folder, catalog, wanted, extra)
    print(path, flush=True)
    if not _open(path):
        print("gradfix: no browser could be opened here; open that file in one", file=sys.stderr)
    for cause in catalog.cause_ids:
        if not os.path.exists(os.path.join(folder, file_name(cause))):
            _write(folder, catalog, cause, extra)
    return 0


def pages_folder(extra: str | None) -> str:
    """The folder of the pages: one for each release of gradfix, and one for each folder of rules of a user's own."""
    from platformdirs import user_cache_dir

    from explainer import __version__

    own = "-" + hashlib.sha256(os.path.abspath(extra).encode()).hexdigest()[:12] if extra else ""
    return os.path.join(user_cache_dir("gradfix", appauthor=False), "pages", f"{__version__}{own}")


def file_name(cause: str) -> str:
    """The name of a cause's page."""
    return f"{cause.replace('/', '.')}.html"


def make_page(catalog: Catalog, name: str, extra: str | None = None) -> str:
    """The page of the cause `name` as HTML; its look-alikes are files beside it."""
    cause = catalog.cause(name)
    known = frozenset(catalog.cause_ids)
    links = Links(cause=lambda other: file_name(other) if other in known else None, myth=lambda _: None)
    blocks = cause_page(
        cause, read_prose(name, extra) or "", read_shapes(name, extra), catalog.messages_of(name), links
    )
    return to_html(f"{cause.title} - gradfix", blocks)


def _write(folder: str, catalog: Catalog, name: str, extra: str | None) -> str:
    import tempfile

    path = os.path.join(folder, file_name(name))
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, suffix=".part", delete=False) as file:
            file.write(make_page(catalog, name, extra))
        os.replace(file.name, path)
    except OSError as error:
        raise GradfixError(f"{path}: the page cannot be written: {error.strerror or error}") from error
    return path


def _open(path: str) -> bool:
    from pathlib import Path

    try:
        return webbrowser.open(Path(path).as_uri())
    except (webbrowser.Error, OSError):
        return False
