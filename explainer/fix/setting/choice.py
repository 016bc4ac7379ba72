"""Reads what a rule wants of settings: `"fp16=true -> fp16=false, bf16=true"`, `"bf16=true, fp16=true -> -fp16"`.

Left of the arrow stand the settings that must be written beside each other, right of it what becomes of them: another value,
a new setting, or `-name` for one that goes. `*` is any value, `@name` the value of another one of them; a dotted name is a
key in a mapping.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from explainer.source.setting.setting import COMMAND, IN_CODE, Setting

ANY = "*"
_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


class Wanted(NamedTuple):
    """A setting and its value; `is_gone` where it is to be taken out."""

    name: str
    value: object = None
    is_gone: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The name as a path."""
        return tuple(self.name.split("."))


class Swap(NamedTuple):
    """What must be written, and what is to be written for it."""

    conditions: tuple[Wanted, ...]
    results: tuple[Wanted, ...]

    @property
    def names(self) -> set[str]:
        """The names of all settings that it speaks of."""
        return {one.parts[-1] for one in (*self.conditions, *self.results)}


def read_swaps(options: object) -> list[Swap]:
    """The swaps of a rule's option."""
    texts = options if isinstance(options, Sequence) and not isinstance(options, str) else ()
    found = []
    for text in texts:
        before, _, after = str(text).rpartition("->")
        found.append(Swap(_read(before), _read(after)))
    return found


def _read(text: str) -> tuple[Wanted, ...]:
    return tuple(_wanted(one.strip()) for one in text.split(",") if one.strip())


def _wanted(text: str) -> Wanted:
    if text.startswith("-"):
        return Wanted(text[1:], is_gone=True)
    name, _, value = text.partition("=")
    try:
        return Wanted(name, json.loads(value))
    except ValueError:
        return Wanted(name, value)


def is_setting(one: Setting, wanted: Wanted) -> bool:
    """Whether a setting is the one that is meant."""
    if one.kind in IN_CODE:
        return one.name == wanted.parts[-1]
    return one.path[-len(wanted.parts) :] == wanted.parts


def place_of_setting(one: Setting, wanted: Wanted) -> tuple[object, ...]:
    """What two settings have in common that stand beside each other: the file, and the mapping, call or command."""
    if one.kind in IN_CODE:
        return one.file.path, one.kind, one.owner, one.group if one.owner else 0
    base = one.path[: -len(wanted.parts)]
    return (one.file.path, one.group) if one.kind == COMMAND else (one.file.path, one.group, base)


def has_value(setting: Setting, value: object) -> bool:
    """Whether a setting says the same: `true`, `yes`, "True" and 1 are one to most readers of configuration."""
    if value == ANY:
        return True
    if isinstance(value, bool):
        return str(setting.value).lower() in (_TRUE if value else _FALSE)
    return setting.value == value or str(setting.value) == str(value)
