"""Settings with their exact place: entries of YAML, JSON, TOML and INI files, flags of command lines, arguments in Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from explainer.source.file import SourceFile
from explainer.source.text import TextFile

YAML, JSON, TOML, INI, COMMAND = "yaml", "json", "toml", "ini", "command"
KEYWORD, DEFAULT, ITEM, ARGPARSE, ASSIGNED = "keyword", "default", "item", "argparse", "assigned"
IN_CODE = (KEYWORD, DEFAULT, ITEM, ARGPARSE, ASSIGNED)
SUFFIXES = {
    ".yaml": YAML, ".yml": YAML, ".json": JSON, ".toml": TOML, ".ini": INI, ".cfg": INI,
    ".sh": COMMAND, ".bash": COMMAND, ".slurm": COMMAND, ".sbatch": COMMAND,
}  # fmt: skip

Path = tuple[str, ...]
Span = tuple[int, int]


class Code(str):
    """A value that is no literal: the expression as it is written."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value that somebody wrote down.

    `path` leads to it in its file, list positions as digits; of an argument in Python it is the one name, and `owner` is
    what is called, the class or the variable. `key` and `span` are where its key and its value stand; a flag without a
    value has an empty span after it. `group` tells documents of one file, commands of one script and calls apart.
    `hold` says why its value cannot be written.
    """

    path: Path
    value: object
    raw: str
    file: TextFile = field(repr=False)
    key: Span | None
    span: Span
    line: int
    kind: str
    group: int = 0
    owner: str | None = None
    hold: str | None = None
    is_flow: bool = False

    @property
    def name(self) -> str:
        """The last part of the path: the setting's own name."""
        return self.path[-1] if self.path else ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Document:
    """A configuration file as read: its settings, branches (mappings and lists) included, or why there are none.

    `trees` are the loaded documents, as plain dictionaries and lists.
    """

    file: TextFile = field(repr=False)
    kind: str
    settings: tuple[Setting, ...] = ()
    trees: tuple[object, ...] = ()
    fault: str | None = None

    def at(self, path: Path, group: int = 0) -> list[Setting]:
        """The settings at a path: more than one where a key stands twice."""
        return [one for one in self.settings if one.path == path and one.group == group]

    def named(self, name: str) -> list[Setting]:
        """The settings of that name, however deep; in command lines, `-` and `_` are one."""
        return [one for one in self.settings if one.name == name]

    def siblings(self, setting: Setting) -> list[Setting]:
        """The settings beside one, itself included, in the order of the file."""
        depth = len(setting.path)
        return [
            one
            for one in self.settings
            if one.group == setting.group and len(one.path) == depth and one.path[:-1] == setting.path[:-1]
        ]


def kind_of(path: str) -> str | None:
    """The kind of settings that a file holds, by its name; None for one that holds none."""
    return SUFFIXES.get(os.path.splitext(path)[1].lower())


@lru_cache(maxsize=256)
def read_document(file: TextFile) -> Document:
    """The settings of a configuration file or script; none, with the fault, where it cannot be read.

    Example: `read_document(make_text("a.yaml", b"lr: 1.0e-3")).settings[0].value` is 0.001.
    """
    kind = kind_of(file.path)
    if kind == YAML:
        from explainer.source.setting.yaml import read_yaml as read
    elif kind == JSON:
        from explainer.source.setting.json import read_json as read
    elif kind == TOML:
        from explainer.source.setting.toml import read_toml as read
    elif kind == INI:
        from explainer.source.setting.ini import read_ini as read
    elif kind == COMMAND:
        from explainer.source.setting.command import read_command as read
    else:
        return Document(file=file, kind="", fault="is no configuration file by its name")
    return read(file)


def read_settings(file: TextFile) -> tuple[Setting, ...]:
    """The settings of any file, a Python one included."""
    if isinstance(file, SourceFile):
        from explainer.source.setting.python import read_python

        return read_python(file)
    return read_document(file).settings


def leaves(tree: object, path: Path = ()) -> list[tuple[Path, object]]:
    """A loaded document as its values with their paths, in order; an empty mapping or list is a value of its own."""
    found: list[tuple[Path, object]] = []
    stack = [(path, tree)]
    while stack:
        here, value = stack.pop()
        items = (
            [(str(key), one) for key, one in value.items()]
            if isinstance(value, Mapping)
            else [(str(at), one) for at, one in enumerate(value)]
            if isinstance(value, list)
            else []
        )
        if not items:
            found.append((here, (type(value).__name__, repr(value))))
        stack.extend(((*here, key), one) for key, one in reversed(items))
    return found
