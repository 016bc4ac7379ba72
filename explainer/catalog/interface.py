"""The libraries' interfaces: looks up in `knowledge/interfaces/` what became of a name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from explainer.catalog.catalog import Catalog
from explainer.model.interface import Change

# The distributions under which a library is installed, where they are not its own name alone.
_DISTRIBUTIONS = {"lightning": ("pytorch-lightning", "lightning")}
# Import names under which a library is found too.
_PACKAGES = {"lightning": ("pytorch_lightning", "lightning", "lightning_fabric")}


def changes(catalog: Catalog, library: str | None = None) -> Iterator[Change]:
    """The changes of one library, or of all, in the order of the files."""
    for name, table in catalog.interfaces.items():
        if library in (None, name):
            for raw in table["change"]:
                yield Change(library=name, **raw)


def find_change(catalog: Catalog, library: str, of: str, old: str) -> Change | None:
    """What became of `old` of the class, function or module `of` of a library; None where the table does not know it.

    Example: `find_change(catalog, "transformers", "TrainingArguments", "evaluation_strategy").new` is "eval_strategy".
    """
    return next((one for one in gone(catalog, of, old) if one.library == library), None)


def gone(catalog: Catalog, of: str, name: str) -> list[Change]:
    """The changes whose old name is `name` of `of`, of whichever library."""
    return [Change(library=library, **raw) for library, raw in catalog.old_names.get((plain_module(of), name), ())]


def came(catalog: Catalog, of: str, name: str) -> list[Change]:
    """The changes whose new name is `name` of `of`, of whichever library."""
    return [Change(library=library, **raw) for library, raw in catalog.new_names.get((plain_module(of), name), ())]


def distributions(library: str) -> tuple[str, ...]:
    """The names under which a library is installed."""
    return _DISTRIBUTIONS.get(library, (library,))


def is_of(library: str, package: str | None) -> bool:
    """Whether an import name belongs to a library."""
    return package is not None and package in _PACKAGES.get(library, (library,))


def plain_module(path: str) -> str:
    """`lightning.pytorch.callbacks` and `pytorch_lightning.callbacks` are one module."""
    if path == "lightning.pytorch" or path.startswith("lightning.pytorch."):
        return "pytorch_lightning" + path[len("lightning.pytorch") :]
    return path


def find_changes(catalog: Catalog, words: str) -> list[Change]:
    """The changes that hold every word in their names, their library or what they say; all where there is no word."""
    wanted = words.lower().split()
    return [one for one in changes(catalog) if all(word in _text(one) for word in wanted)]


def _text(change: Change) -> str:
    parts: tuple[Any, ...] = (
        change.library,
        change.kind,
        change.of,
        change.old,
        change.new,
        change.write,
        change.note,
        change.removed,
    )
    return " ".join(str(part) for part in parts if part).lower()
