"""Where the rule base lies: inside the installed package, or beside it in a checkout."""

from __future__ import annotations

import os

from explainer.errors import RuleError

BUNDLE = ".bundle.json"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def knowledge_folder() -> str:
    """The folder of the rules that come with gradfix.

    Raises:
        RuleError: the installation has none.
    """
    for folder in (os.path.join(_PACKAGE, "knowledge"), os.path.join(os.path.dirname(_PACKAGE), "knowledge")):
        if os.path.isdir(os.path.join(folder, "signatures")):
            return folder
    raise RuleError("the rule base is missing: reinstall gradfix (no `knowledge` folder in or beside the package)")


def is_installed(folder: str) -> bool:
    """Whether `folder` came with a wheel, which carries its bundle ready made."""
    return os.path.dirname(folder) == _PACKAGE


def rule_files(folder: str) -> list[tuple[str, int, int]]:
    """The rule files under `folder`: path relative to it, size in bytes, time of the last change in ns."""
    found: list[tuple[str, int, int]] = []
    for family in _folders(folder):
        if family == "myths":  # experiments about remedies; not read by `explain`
            continue
        for entry in os.scandir(os.path.join(folder, family)):
            if family in ("signatures", "interfaces"):
                if entry.name.endswith(".toml"):
                    found.append(_stamp(f"{family}/{entry.name}", entry.stat()))
            elif entry.is_dir():
                path = os.path.join(entry.path, "cause.toml")
                if os.path.isfile(path):
                    found.append(_stamp(f"{family}/{entry.name}/cause.toml", os.stat(path)))
    return sorted(found)


def cause_ids(folder: str) -> frozenset[str]:
    """The ids of the causes under `folder`."""
    return frozenset(
        path.removesuffix("/cause.toml") for path, _, _ in rule_files(folder) if path.endswith("/cause.toml")
    )


def _folders(folder: str) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and entry.name[0] not in "._")
    except OSError as error:
        raise RuleError(f"{folder}: cannot read the rules: {error.strerror}") from error


def _stamp(path: str, status: os.stat_result) -> tuple[str, int, int]:
    return path, status.st_size, status.st_mtime_ns
