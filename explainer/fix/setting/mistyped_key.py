"""A key of a configuration that is all but the name of a part which got no gradient: `colour` for `color` among the loss weights.

Only beside another mapping that has the same keys but for that one, spelled as the part is: what skips names that it does not
know leaves the part without a loss.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from explainer.fix.setting.edit import rename_key
from explainer.model.patch import Edit
from explainer.source.program import Program
from explainer.source.setting.setting import Document, Setting

_CLOSE = 0.8
_OWN = frozenset({"weight", "bias"})


def mistyped_keys(names: Sequence[str], program: Program) -> Iterator[tuple[Setting, str, Edit]]:
    """The settings whose key is meant to be a part of one of several parameters' names, with that name and the edit that gives it."""
    parts = {part for name in names for part in name.split(".") if not part.isdigit()} - _OWN
    for document in program.documents():
        mappings = _mappings(document)
        for mapping in mappings:
            for other in mappings:
                pair = _one_off(list(mapping), list(other))
                if pair is None or pair[1] not in parts:
                    continue
                setting = mapping[pair[0]]
                edit = rename_key(setting, pair[1])
                if isinstance(edit, Edit):
                    yield setting, pair[1], edit


def _mappings(document: Document) -> list[dict[str, Setting]]:
    """The settings of each mapping of a document by their keys."""
    found: dict[tuple[object, ...], dict[str, Setting]] = {}
    for one in document.settings:
        found.setdefault((one.group, *one.path[:-1]), {})[one.name] = one
    return [one for one in found.values() if len(one) > 1]


def _one_off(keys: list[str], others: list[str]) -> tuple[str, str] | None:
    """The one key that two mappings have spelled each in its own way; None where they differ in more."""
    own, their = set(keys) - set(others), set(others) - set(keys)
    if len(own) != 1 or len(their) != 1:
        return None
    (key,), (other,) = own, their
    return (key, other) if difflib.SequenceMatcher(None, key, other).ratio() >= _CLOSE else None
