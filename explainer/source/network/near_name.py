"""Which name of a model a word means that fits none of them: one that is spelled a little otherwise, or has another name before it.

`module.head` means `head`, `encoder.layer.2.*` means `encoder.layers.2`, `clasifier` means `classifier`; `classifier` means the one
part that is a head. Only where there is one such name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.source.network.module import HEAD
from explainer.source.network.name_test import ENDS, FULL, GLOB, HAS, MATCH, PART, SEARCH, fits

SPELLED, MISTYPED, A_HEAD = 0, 1, 2
"""How far a name is from a word: spelled otherwise, mistyped or shortened, another word for a model's head."""
_REGEX = (MATCH, SEARCH, FULL)
_LITERAL = re.compile(r"[\w-]+")
_LEAST = 4
_CLOSE = 0.5
# A literal with the wildcards and anchors that may stand round it: of a glob, of a regular expression.
_ENDS = re.compile(r"\**([\w-]+)\**"), re.compile(r"[\^(]*(?:\.\*)?([\w-]+)(?:\.[*+]\??)?[$)]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """The word with the name that it means, and how far that is from what it says."""

    text: str
    far: int


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a word between two dots; not `is_literal` where a wildcard stands for it."""

    text: str
    start: int

    @property
    def is_literal(self) -> bool:
        return _LITERAL.fullmatch(self.text) is not None


def with_parts(names: Sequence[str]) -> list[str]:
    """Names of parameters, and those of the modules that hold them."""
    found: dict[str, None] = {}
    for name in names:
        parts = name.split(".")
        found.update({".".join(parts[:end]): None for end in range(1, len(parts) + 1)})
    return list(found)


def near_name(word: str, how: str, names: Sequence[str]) -> Near | None:
    """The one name that a word may mean which fits none; None where there are several, or none is near."""
    parts = _parts(word, how)
    if not any(one.is_literal for one in parts):
        return None
    paths = [name.split(".") for name in with_parts(names)]
    found: dict[str, int] = {}
    for text, far in (
        *_without_beginning(word, parts, paths),
        *_respelled(word, parts, paths, how),
        *_as_head(word, parts, paths),
    ):
        if any(fits(name, text, how) for name in names):
            found[text] = min(far, found.get(text, far))
    nearest = min(found.values(), default=0)
    texts = [text for text, far in found.items() if far == nearest]
    return Near(text=texts[0], far=nearest) if len(texts) == 1 else None


def close_names(word: str, how: str, names: Sequence[str]) -> list[str]:
    """A few names that look like a word; the model's own parts where none does."""
    core = ".".join(one.text for one in _parts(word, how) if one.is_literal)
    close = difflib.get_close_matches(core, with_parts(names), n=3, cutoff=_CLOSE)
    return close or list(dict.fromkeys(name.partition(".")[0] for name in names))[:4]


def _parts(word: str, how: str) -> list[_Part]:
    """The parts of a word, without wildcards at its ends."""
    dot = r"\\\.|\.(?![*+?{])" if how in _REGEX else r"\."
    found, at = [], 0
    for one in [*re.finditer(dot, word), None]:
        end = one.start() if one is not None else len(word)
        text = word[at:end]
        core = _ENDS[how in _REGEX].fullmatch(text) if how in (*_REGEX, GLOB) else None
        found.append(_Part(core[1], at + core.start(1)) if core is not None else _Part(text, at))
        at = one.end() if one is not None else at
    found = [one for one in found if one.text]
    while found and not found[-1].is_literal:
        found.pop()
    while found and not found[0].is_literal:
        found.pop(0)
    return found


def _without_beginning(word: str, parts: Sequence[_Part], paths: Sequence[Sequence[str]]) -> Iterator[tuple[str, int]]:
    """`head` of `module.head`."""
    for count in range(1, len(parts)):
        rest = parts[count:]
        if all(one.is_literal for one in parts[:count]) and any(
            _aligned(rest, path) == [one.text for one in rest] for path in paths
        ):
            yield word[: parts[0].start] + word[rest[0].start :], SPELLED
            return


def _respelled(
    word: str, parts: Sequence[_Part], paths: Sequence[Sequence[str]], how: str
) -> Iterator[tuple[str, int]]:
    """The word with the parts of a path that are near to its own, or with the path that is the same but for dots and lines."""
    is_anywhere = how in (HAS, SEARCH, PART, ENDS) or not word.startswith(("^", parts[0].text))
    core = word[parts[0].start : parts[-1].start + len(parts[-1].text)]
    for path in paths:
        for at in range(len(path)) if is_anywhere else (0,):
            inner = path[at:]
            named = _aligned(parts, inner)
            if named is not None:
                text = word
                for one, new in zip(reversed(parts), reversed(named), strict=True):
                    text = text[: one.start] + new + text[one.start + len(one.text) :]
                yield text, max(_far(one.text, new) or SPELLED for one, new in zip(parts, named, strict=True))
            elif all(one.is_literal for one in parts) and _squashed(core) == _squashed(".".join(inner)):
                yield word.replace(core, ".".join(inner), 1), SPELLED


def _aligned(parts: Sequence[_Part], path: Sequence[str]) -> list[str] | None:
    """The first parts of a path where each is what a word's own part says, or near to it."""
    if len(parts) > len(path):
        return None
    named = []
    for one, name in zip(parts, path, strict=False):
        if one.is_literal and _far(one.text, name) is None:
            return None
        named.append(name if one.is_literal else one.text)
    return named


def _as_head(word: str, parts: Sequence[_Part], paths: Sequence[Sequence[str]]) -> Iterator[tuple[str, int]]:
    """The one part of a model that is a head, for another word that says so."""
    heads = {path[0] for path in paths if HEAD.search(path[0])}
    if len(parts) == 1 and HEAD.search(parts[0].text) and len(heads) == 1:
        (one,) = parts
        yield word[: one.start] + heads.pop() + word[one.start + len(one.text) :], A_HEAD


def _far(word: str, name: str) -> int | None:
    """How far a part of a name is from a part of a word; None where it is another one."""
    own, other = _squashed(word), _squashed(name)
    if own == other:
        return SPELLED
    if word.isdigit() or name.isdigit() or min(len(own), len(other)) < _LEAST:
        return None
    is_short = "_" not in word + name and (own.startswith(other) or other.startswith(own))
    return MISTYPED if is_short or _is_one_off(own, other) else None


def _squashed(text: str) -> str:
    """A name without what is written now so, now so: case, dots and lines, the plural."""
    return "".join(one.removesuffix("s") if len(one) > _LEAST else one for one in re.split(r"[._-]", text.lower()))


def _is_one_off(one: str, other: str) -> bool:
    """Whether one letter is wrong, missing, too many, or has changed places with the next."""
    if len(one) > len(other):
        one, other = other, one
    at = next((index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    if len(one) == len(other):
        is_swapped = one[at : at + 2] == other[at : at + 2][::-1] and one[at + 2 :] == other[at + 2 :]
        return is_swapped or one[at + 1 :] == other[at + 1 :]
    return len(other) - len(one) == 1 and one[at:] == other[at + 1 :]
