"""A report with its texts or paths replaced throughout; what does not change is not copied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

T = TypeVar("T")
_PATHS = ("file", "source")
_SENTENCES = ("says", "why")


def rewrite(value: T, on_text: Callable[[str], str]) -> T:
    """`value`, a dataclass of this model, with every string in it passed through `on_text`."""
    rewritten: T = _rewrite(value, on_text)
    return rewritten


def rewrite_paths(value: T, on_path: Callable[[str], str]) -> T:
    """`value` with only its file names passed through `on_path`."""
    rewritten: T = _rewrite(value, on_path, only=_PATHS)
    return rewritten


def rewrite_sentences(value: T, on_text: Callable[[str], str]) -> T:
    """`value` with only what evidence and lines say passed through `on_text`."""
    rewritten: T = _rewrite(value, on_text, only=_SENTENCES)
    return rewritten


def _rewrite(value: Any, change: Callable[[str], str], only: tuple[str, ...] | None = None, name: str = "") -> Any:
    if isinstance(value, str):
        return change(value) if only is None or name in only else value
    if isinstance(value, tuple):
        changed = [_rewrite(one, change, only, name) for one in value]
        return tuple(changed) if any(new is not old for new, old in zip(changed, value, strict=True)) else value
    if is_dataclass(value) and not isinstance(value, type):
        new = {}
        for field in fields(value):
            old = getattr(value, field.name)
            changed_field = _rewrite(old, change, only, field.name)
            if changed_field is not old:
                new[field.name] = changed_field
        return replace(value, **new) if new else value
    return value
