"""Reads the flags of command lines in shell scripts: `--flag value`, `--flag=value`, `key=value` after a program's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from explainer.source.setting.setting import COMMAND, Document, Setting, Span
from explainer.source.text import TextFile

# Words are runs of plain characters, quoted strings and expansions; what is left ends a command or continues a line.
_TOKEN = re.compile(
    r"""(?P<join>\\\r?\n)|(?P<space>[ \t]+)|(?P<comment>(?<![^\s;&|()])\#[^\n]*)|(?P<here><<-?\s*(?P<quote>['"]?)(?P<mark>\w+)(?P=quote))"""
    r"""|(?P<redirect>\d*(?:>>?|<)&?[ \t]*[^\s;&|()<>]+)|(?P<end>[\n;&|()]+|\r\n)"""
    r"""|(?P<word>(?:'[^']*'|"(?:[^"\\]|\\.)*"|\$\{[^}\n]*\}|\$\([^)\n]*\)|\\.|[^\s\\'";&|()<>\r\n])+)|(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_OVERRIDE = re.compile(r"\+{0,2}([A-Za-z_][\w./@-]*)=")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


class _Word(NamedTuple):
    span: Span
    raw: str


def read_command(file: TextFile) -> Document:
    """The flags of the command lines in a shell script; what stands in here-documents is not read."""
    settings: list[Setting] = []
    for group, words in enumerate(_commands(file.text)):
        settings.extend(_flags(words, file, group))
    return Document(file=file, kind=COMMAND, settings=tuple(settings))


def _commands(text: str) -> Iterator[list[_Word]]:
    """The words of each command."""
    words: list[_Word] = []
    at = 0
    awaited: list[str] = []
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None
        at = found.end()
        if found.group("word"):
            words.append(_Word(found.span(), found.group()))
        elif found.group("here"):
            awaited.append(found.group("mark"))
        elif found.group("end"):
            if words:
                yield words
                words = []
            while awaited and "\n" in found.group("end"):
                over = re.compile(rf"^[ \t]*{awaited.pop(0)}[ \t]*\r?$", re.MULTILINE).search(text, at)
                at = over.end() if over else len(text)
    if words:
        yield words


def _flags(words: list[_Word], file: TextFile, group: int) -> Iterator[Setting]:
    is_after_program = False
    for number, word in enumerate(words):
        bare = word.raw
        start = word.span[0]
        if bare.startswith("--") and len(bare) > 2:
            name, equals, _ = bare.partition("=")
            after = words[number + 1] if number + 1 < len(words) else None
            if equals:
                span = (start + len(name) + 1, word.span[1])
            elif after is not None and _is_value(after.raw):
                span = after.span
            else:
                span = (word.span[1], word.span[1])
            yield _setting(file, group, name[2:], (start, start + len(name)), span)
        elif is_after_program and (found := _OVERRIDE.match(bare)):
            key = found.span(1)
            yield _setting(
                file, group, found.group(1), (start + key[0], start + key[1]), (start + found.end(), word.span[1])
            )
        is_after_program = is_after_program or _unquoted(bare).endswith(".py") or (number == 0 and "=" not in bare)


def _is_value(raw: str) -> bool:
    """Whether a word after a flag is its value: no flag itself, no program that a launcher runs."""
    return (not raw.startswith("-") or bool(_NUMBER.fullmatch(raw))) and not _unquoted(raw).endswith(".py")


def _unquoted(raw: str) -> str:
    return raw[1:-1] if len(raw) > 1 and raw[0] == raw[-1] and raw[0] in "\"'" else raw


def _setting(file: TextFile, group: int, name: str, key: Span, span: Span) -> Setting:
    raw = file.text[span[0] : span[1]]
    return Setting(
        path=tuple(name.replace("-", "_").split(".")),
        value=read_word(raw) if span[0] != span[1] else True,
        raw=raw,
        file=file,
        key=key,
        span=span,
        line=file.line_of(key[0]),
        kind=COMMAND,
        group=group,
    )


def read_word(raw: str) -> object:
    """What a word of a command line means to the program that gets it, as argparse and Hydra read it."""
    plain = _unquoted(raw)
    if plain.lower() in ("true", "false"):
        return plain.lower() == "true"
    if plain.lower() in ("none", "null"):
        return None
    if _NUMBER.fullmatch(plain):
        return int(plain) if plain.lstrip("+-").isdigit() else float(plain)
    return plain
