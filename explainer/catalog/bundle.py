"""Loads the rules: one JSON bundle, made from the TOML files when it is missing or older than they are."""

from __future__ import annotations

import json
import os
from typing import Any

from explainer.catalog.catalog import Catalog
from explainer.catalog.place import BUNDLE, is_installed, knowledge_folder, rule_files
from explainer.errors import RuleError


def load_catalog(extra: str | None = None) -> Catalog:
    """The rules that come with gradfix, and over them those of the folder `extra` (a user's own).

    Raises:
        RuleError: a folder or a rule file that cannot be used.
    """
    data = _own_rules()
    if extra is not None:
        data = merge(data, _read_extra(extra))
    return Catalog(data)


def merge(base: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """Two bundles as one; where both name a cause or a signature, `extra` has it."""
    return {
        "format": base["format"],
        "signatures": {**base["signatures"], **extra["signatures"]},
        "causes": {**base["causes"], **extra["causes"]},
        "interfaces": {
            library: _merge_changes(base["interfaces"].get(library, {}), extra["interfaces"].get(library, {}))
            for library in {**base["interfaces"], **extra["interfaces"]}
        },
    }


def _merge_changes(base: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """The changes of one library from two bundles; those of `extra` are found first."""
    return {
        "heirs": {**base.get("heirs", {}), **extra.get("heirs", {})},
        "change": [*extra.get("change", ()), *base.get("change", ())],
    }


def write_bundle(folder: str, target: str) -> dict[str, Any]:
    """Validate the rules under `folder` and write their bundle to `target`, atomically."""
    import tempfile

    from explainer.catalog.source import build_bundle

    data = {**build_bundle(folder), "stamp": _stamp(folder)}
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".bundle-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, ensure_ascii=False, separators=(",", ":"))
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    return data


def _own_rules() -> dict[str, Any]:
    folder = knowledge_folder()
    path = os.path.join(folder, BUNDLE)
    data = _read_bundle(path)
    if data is not None and (is_installed(folder) or data.get("stamp") == _stamp(folder)):
        return data
    try:
        return write_bundle(folder, path)
    except OSError:
        # A read-only checkout: the rules work, only slower.
        from explainer.catalog.source import build_bundle

        return build_bundle(folder)


def _read_bundle(path: str) -> dict[str, Any] | None:
    from explainer.catalog.catalog import FORMAT

    try:
        with open(path, encoding="utf-8") as file:
            data: dict[str, Any] = json.load(file)
    except (OSError, ValueError):
        return None
    return data if data.get("format") == FORMAT else None


def _stamp(folder: str) -> str:
    """What changes whenever a rule file is added, removed or written."""
    return "\n".join(f"{path} {size} {changed}" for path, size, changed in rule_files(folder))


def _read_extra(folder: str) -> dict[str, Any]:
    from explainer.catalog.source import build_bundle

    if not os.path.isdir(folder):
        raise RuleError(f"{folder}: no such folder of rules")
    return build_bundle(folder, _own_rules()["signatures"])
