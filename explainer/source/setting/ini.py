"""Reads INI files with the place of every key and value, as `configparser` does by default; keys are in lower case there.

What follows a value behind ` #` or ` ;` is a comment only to a parser that is told so: it is taken for one where a number or a
truth value stands before it, which the default parser would refuse. Else it is part of the text, and the value is left alone.
Interpolation stays as it is written.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.setting.setting import INI, Document, Path, Setting, Span
from explainer.source.text import TextFile

DEFAULTS = "DEFAULT"
_DELIMITER = re.compile(r"[=:]")
_COMMENT = re.compile(r"\s+[#;]")
_NUMBER = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|inf)", re.ASCII | re.IGNORECASE)
_MOST_DIGITS = 100  # int refuses thousands
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_REFERENCE = re.compile(r"%\(([^)\n]+)\)s|\$\{(?:[^:}\n]*:)?([^:}\n]+)\}")
# The parser's own pattern of an option takes the square of such a gap's length.
_GAP = re.compile(r"\S[^\S\r\n]{200}")


def read_ini(file: TextFile) -> Document:
    """The settings of an INI file."""
    if _GAP.search(file.text):
        return Document(file=file, kind=INI, fault="does not parse: it has a line with a gap of more than 200 blanks")
    lines = [file.line(number) for number in range(1, file.line_of(len(file.text)) + 1)]
    # Without a section of defaults that one is read as any other: what it hands on is not repeated in each.
    parser = configparser.RawConfigParser(default_section="", strict=False)
    try:
        parser.read_file(lines)
    except configparser.Error as error:
        return Document(file=file, kind=INI, fault=f"does not parse: {str(error).partition(chr(10))[0]}")
    read = {name: dict(parser.items(name)) for name in parser.sections()}
    options = list(_options(file, lines))
    own: dict[str, dict[str, str]] = {name: {} for name in read}
    for one in options:
        own.get(one.path[0], {})[one.path[1]] = one.text
    if own != read:
        return Document(file=file, kind=INI, fault="does not parse: its lines have no clear places")
    repeated = {(one[0] or one[1]).strip().lower() for one in _REFERENCE.findall(file.text)}
    settings = tuple(_setting(one, file, repeated) for one in options)
    tree = {name: {key: read_value(text) for key, text in section.items()} for name, section in read.items()}
    return Document(file=file, kind=INI, settings=settings, trees=(tree,))


def read_value(text: str) -> object:
    """What a value is to who asks for a number or a truth value; its text where it is neither.

    Example: `read_value("0.1 ; slow")` is 0.1, `read_value("adam ; slow")` the whole text.
    """
    word = _word(text)
    if len(word) <= _MOST_DIGITS and _NUMBER.fullmatch(word):
        return int(word) if word.lstrip("+-").isdigit() else float(word)
    return _TRUTH.get(word.lower(), text)


def sections_of(document: Document) -> tuple[str, ...]:
    """The names of a file's sections, those without a key included."""
    tree = document.trees[0] if document.trees else None
    return tuple(tree) if isinstance(tree, dict) else ()


def place_of(document: Document, path: Path, key: str) -> Path | None:
    """Where a file, or a section of it, holds what is asked for by a key; a section has what `[DEFAULT]` hands on."""
    if not path:
        return (key,) if key in (*sections_of(document), DEFAULTS) else None
    if len(path) > 1:
        return None
    places = [(section, key.lower()) for section in (path[0], DEFAULTS)]
    return next((place for place in places if document.at(place)), None)


def with_defaults(document: Document) -> dict[str, dict[str, object]]:
    """A file's sections as the program sees them: with what `[DEFAULT]` hands on to each."""
    tree: dict[str, dict[str, object]] = {name: {} for name in sections_of(document)}
    for one in document.settings:
        tree[one.path[0]][one.path[1]] = one.value
    return {name: {**tree.get(DEFAULTS, {}), **section} for name, section in tree.items()}


@dataclass(slots=True)
class _Option:
    """A key as the lines of a file give it."""

    path: Path
    key: Span
    span: Span
    parts: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.parts).rstrip()


def _options(file: TextFile, lines: list[str]) -> Iterator[_Option]:
    """The keys of lines that are known to be valid: those further in than their key's go on with its value."""
    section, level = "", 0
    option: _Option | None = None
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text and option:
            option.parts.append("")
        if not text or text.startswith(("#", ";")):
            continue
        indent = len(line) - len(line.lstrip())
        start = file.line_start(number) + indent
        if option and indent > level:
            option.parts.append(text)
            option.span = option.span[0], start + len(text)
            continue
        level = indent
        if option:
            yield option
        header = configparser.RawConfigParser.SECTCRE.match(text)
        section = header.group("header") if header else section
        option = None if header else _option(section, text, start)
    if option:
        yield option


def _option(section: str, text: str, start: int) -> _Option | None:
    """A line with a key; a value that is empty stands behind the delimiter."""
    found = _DELIMITER.search(text)
    if found is None:
        return None
    name, value = text[: found.start()].rstrip(), text[found.end() :].strip()
    at = start + (len(text) - len(value) if value else found.end())
    return _Option((section, name.lower()), (start, start + len(name)), (at, at + len(value)), [value])


def _setting(one: _Option, file: TextFile, repeated: set[str]) -> Setting:
    value = read_value(one.text)
    start, end = one.span
    if not isinstance(value, str):
        end = start + len(_word(one.text))
    is_repeated = one.path[1] in repeated
    return Setting(
        path=one.path,
        value=value,
        raw=file.text[start:end],
        file=file,
        key=None if is_repeated else one.key,
        span=(start, end),
        line=file.line_of(one.key[0]),
        kind=INI,
        hold=f"other values repeat it through `%({one.path[1]})s`" if is_repeated else _hold(one.text),
    )


def _word(text: str) -> str:
    found = _COMMENT.search(text)
    return text[: found.start()] if found else text


def _hold(text: str) -> str | None:
    if "\n" in text:
        return "it is written over several lines"
    if isinstance(read_value(text), str) and _COMMENT.search(text):
        return "what stands behind it may be a comment"
    return None
