"""The wording of a new cause from a cluster of a triage: what failures that no rule knew had in common."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from explainer.catalog.pattern import check_pattern
from explainer.catalog.source import read_toml
from explainer.errors import RuleError

SCHEMA = "gradfix.cluster/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Messages of one exception that have one template; `contains` and `pattern` fit all of them."""

    exception: str
    contains: tuple[str, ...]
    pattern: str | None
    messages: tuple[str, ...]
    torch: str | None
    count: int
    files: tuple[str, ...]


def read_cluster(path: str) -> Seen:
    """The cluster in a file that `gradfix triage --out` wrote.

    Raises:
        RuleError: it cannot be read, or is no such file.
    """
    raw = read_toml(path, path)
    exception, messages, releases = _text(raw.get("exception")), _texts(raw.get("messages")), _texts(raw.get("torch"))
    if raw.get("schema") != SCHEMA or not exception or not messages:
        raise RuleError(f"{path}: no cluster of a triage ({SCHEMA} with `exception` and `messages`)")
    count = raw.get("count")
    return Seen(
        exception=exception,
        contains=_literals(_texts(raw.get("contains")), messages),
        pattern=_pattern(_text(raw.get("pattern")), messages),
        messages=messages,
        torch=releases[0].partition("+")[0] if len(releases) == 1 else None,
        count=count if isinstance(count, int) else len(messages),
        files=_texts(raw.get("files")),
    )


def form_of(seen: Seen) -> str:
    """The `[[form]]` that recognises the messages, with each as a sample, in TOML."""
    lines = ["[[form]]", f"exceptions = [{_quoted(seen.exception)}]"]
    lines += [f"contains = [{', '.join(map(_quoted, seen.contains))}]"] if seen.contains else []
    lines += [f"pattern = '''{seen.pattern}'''"] if seen.pattern else []
    for message in seen.messages:
        lines += ["", "[[form.sample]]"]
        lines += [f"torch = {_quoted(seen.torch)}"] if seen.torch else []
        lines += ['origin = "reported"', f"text = {_quoted(message)}"]
    return "\n".join(lines) + "\n"


def literal_of(seen: Seen) -> str:
    """The words for a first evidence, in TOML."""
    return _quoted(seen.contains[0] if seen.contains else _flat(seen.messages[0])[:40])


def _literals(given: tuple[str, ...], messages: tuple[str, ...]) -> tuple[str, ...]:
    """The literals that all messages hold; the message itself where they are all one and have no other."""
    found = tuple(one for one in given if one and all(one in _flat(message) for message in messages))
    return found if found or len(messages) > 1 else (_flat(messages[0])[:200],)


def _pattern(given: str, messages: tuple[str, ...]) -> str | None:
    """The pattern, where it is safe to run and finds every message."""
    if not given.isprintable() or "'''" in given or given.endswith("'") or check_pattern(given):
        return None
    return given if given and all(re.search(given, _flat(message)) for message in messages) else None


def _flat(text: str) -> str:
    return " ".join(text.split())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _quoted(text: str) -> str:
    """A basic string of TOML: JSON's, but for what only one of the two allows."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
