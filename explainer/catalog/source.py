"""TOML rule files to one validated dictionary, the bundle that `explain` loads."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from typing import Any

from explainer.catalog.catalog import FORMAT
from explainer.catalog.place import rule_files
from explainer.errors import RuleError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def build_bundle(folder: str, known_signatures: Collection[str] = ()) -> dict[str, Any]:
    """All rules under `folder`, validated, as plain data: `signatures` by name, `causes` by id, `interfaces`.

    The rules may refer to `known_signatures`, those of the rule base that they extend.

    Raises:
        RuleError: a file that is no TOML, or a key that the format does not know; says the file and the key.
    """
    from explainer.catalog.schema import CauseFile, InterfaceFile, SignatureFile

    signatures: dict[str, Any] = {}
    causes: dict[str, Any] = {}
    interfaces: dict[str, Any] = {}
    for path, _, _ in rule_files(folder):
        raw = read_toml(os.path.join(folder, path), path)
        if path.startswith("signatures/"):
            signatures[path[len("signatures/") : -len(".toml")]] = _validated(SignatureFile, raw, path)
        elif path.startswith("interfaces/"):
            interfaces[path[len("interfaces/") : -len(".toml")]] = _validated(InterfaceFile, raw, path)
        else:
            causes[path[: -len("/cause.toml")]] = _validated(CauseFile, raw, path)
    _check_references(causes, {*signatures, *known_signatures})
    return {"format": FORMAT, "signatures": signatures, "causes": causes, "interfaces": interfaces}


def read_toml(path: str, shown: str) -> dict[str, Any]:
    """The TOML file at `path`; `shown` is its name in errors.

    Raises:
        RuleError: it cannot be read or is no TOML.
    """
    try:
        with open(path, "rb") as file:
            data: dict[str, Any] = tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise RuleError(f"{shown}: no valid TOML: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise RuleError(f"{shown}: cannot be read: {error}") from error
    return data


def _validated(model: Any, raw: dict[str, Any], path: str) -> dict[str, Any]:
    from pydantic import ValidationError

    try:
        data: dict[str, Any] = model.model_validate(raw).model_dump(exclude_defaults=True)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise RuleError(f"{path}: {key or 'file'}: {first['msg']}") from error
    return data


def _check_references(causes: dict[str, Any], signatures: set[str]) -> None:
    for cause, data in causes.items():
        for name in data.get("signature", ()):
            if name not in signatures:
                raise RuleError(f"{cause}/cause.toml: signature {name!r} does not exist in signatures/")
        for name in data.get("prior", ()):
            if name not in data.get("signature", ()) and name != cause:
                raise RuleError(f"{cause}/cause.toml: prior for {name!r}, which is not among its signatures")
