"""Tells what became of the name that a message complains of, from the table of the libraries' interfaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from explainer.catalog.catalog import Catalog
from explainer.catalog.interface import came, changes, distributions, gone, is_of, plain_module
from explainer.match.signature import SignatureMatch
from explainer.match.surroundings import Known, Surroundings
from explainer.model.finding import Fix
from explainer.model.incident import Frame, Incident
from explainer.model.interface import Change

GONE, TOO_NEW, OVERRIDE, DEPRECATED, CONTRADICTED = "gone", "too-new", "override", "deprecated", "contradicted"
_CALLS, _IMPORTS, _ATTRIBUTES = "call-does-not-fit", "name-not-in-library", "attribute-missing"


class Told(NamedTuple):
    """What the table tells of a message: the change, its story, a sentence, and whether it leaves no other reading."""

    change: Change
    story: str
    said: str
    is_sure: bool


class _Asked(NamedTuple):
    """A name that a message complains of, and what it is said to belong to; `caller` is the frame that used it."""

    of: str
    name: str
    caller: Frame | None
    is_installed: bool = False


def tell(match: SignatureMatch, incident: Incident, catalog: Catalog, surroundings: Surroundings) -> Told | None:
    """What the table knows of the name that a message complains of; None where it does not know that very name.

    A function of the program is none of the table's, whatever its arguments are called.
    """
    if match.utterance.kind == "warning" or match.signature not in (_CALLS, _IMPORTS, _ATTRIBUTES):
        return _tell_deprecated(match, incident, catalog)
    for asked in _asked(match):
        found = [
            *(_told(one, GONE, asked, catalog, surroundings) for one in gone(catalog, asked.of, asked.name)),
            *(_told(one, TOO_NEW, asked, catalog, surroundings) for one in came(catalog, asked.of, asked.name)),
        ]
        if found:
            return min(found, key=lambda told: (told.story == CONTRADICTED, not told.is_sure))
    return _tell_override(match, catalog, surroundings)


def propose(told: Told) -> Fix:
    """The fix that the table gives: what to write instead."""
    change = told.change
    title = f"Write {_quoted(change.write)}"
    if told.story == TOO_NEW:
        title = f"Upgrade {change.library} to {change.added} or later (`pip install -U {distributions(change.library)[0]}`)"
        if change.old is not None:
            title += f", or write `{change.old}`, the earlier name"
    because = change.note or f"it is what {_since(change)} takes"
    return Fix(id="name-of-this-release", title=title, applicability="display", kind="advice", because=because)


def _since(change: Change) -> str:
    release = change.added or change.removed or change.deprecated
    return f"{change.library} {release} and later" if release else change.library


def _quoted(text: str) -> str:
    return text if "`" in text or " " in text.split("(")[0] else f"`{text}`"


def _asked(match: SignatureMatch) -> Iterator[_Asked]:
    """What a message asks for, under each owner that it may mean."""
    fields = {key: str(value) for key, value in match.fields.items()}
    caller = match.utterance.frames[-1] if match.utterance.frames else None
    if match.signature == _CALLS and "argument" in fields:
        for owner in _callees(fields["callee"], caller):
            yield _Asked(owner, fields["argument"], caller)
    elif match.signature == _ATTRIBUTES:
        yield _Asked(fields["owner"], fields["name"], caller)
    elif match.signature == _IMPORTS:
        yield from _imports(fields, caller)


def _callees(callee: str, caller: Frame | None) -> Iterator[str]:
    """`TrainingArguments.__init__` is the class; a bare `__init__` is what the calling line names before a parenthesis."""
    parts = [part for part in callee.split(".") if part != "<locals>"]
    if parts == ["__init__"]:
        yield from re.findall(r"([A-Z]\w{2,80})\(", (caller.code or "")[:2000] if caller else "")
    elif parts[-1] == "__init__":
        yield parts[-2]
    else:
        yield ".".join(parts[-2:])
        if len(parts) == 1 or parts[-2].islower():
            yield parts[-1]


def _imports(fields: dict[str, str], caller: Frame | None) -> Iterator[_Asked]:
    file = fields.get("file", "")
    is_installed = "site-packages" in file or "dist-packages" in file
    module = fields.get("module", "")
    if "name" in fields:
        yield _Asked(module, fields["name"], caller, is_installed)
        return
    parts = module.split(".")
    for end in range(len(parts), 1, -1):
        yield _Asked(".".join(parts[: end - 1]), parts[end - 1], caller, is_installed=True)


def _told(change: Change, story: str, asked: _Asked, catalog: Catalog, surroundings: Surroundings) -> Told:
    """A change as evidence for or against: does the release that is known, if one is, fit the story?"""
    known = _release(change, surroundings)
    fits = _fits(change, story, surroundings)
    base = _says_gone(change) if story == GONE else _says_new(change)
    if known is not None and fits is False:
        return Told(change, CONTRADICTED, f"{base}; but this is {change.library} {known.value} ({known.source})", False)
    if known is not None and fits:
        base += f"; this is {change.library} {known.value} ({known.source})"
    return Told(change, story, base, _is_sure(change, asked, bool(fits), catalog))


def _is_sure(change: Change, asked: _Asked, fits: bool, catalog: Catalog) -> bool:
    """Whether the name can only be the library's: it was imported from it, or the release fits and no other has it."""
    if change.kind == "import":
        top = plain_module(asked.of).partition(".")[0]
        return asked.is_installed or fits and is_of(change.library, top)
    owners = {one.library for one in changes(catalog) if one.of == change.of or one.new_place[0] == change.of}
    by_library = asked.caller is not None and is_of(change.library, asked.caller.library)
    return (by_library or fits) and len(owners) == 1


def _fits(change: Change, story: str, surroundings: Surroundings) -> bool | None:
    """Whether the known release lacks the name; None where no release is known."""
    release, lacks_from = (change.removed, True) if story == GONE else (change.added, False)
    if release is None:
        return None
    for name in distributions(change.library):
        answer = surroundings.satisfies(name, f">={release}")
        if answer is not None:
            return answer[0] is lacks_from
    return None


def _release(change: Change, surroundings: Surroundings) -> Known | None:
    found = (surroundings.version(name) for name in distributions(change.library))
    return next((known for known in found if known is not None), None)


def _says_gone(change: Change) -> str:
    when = f"was removed in {change.library} {change.removed}" if change.removed else f"is deprecated in {change.library}"
    said = f"`{change.old}` of `{change.of}` {when}"
    if change.new is None:
        return f"{said}; write {_quoted(change.write)}"
    since = f" since {change.added}" if change.added else ""
    return f"{said}; it is `{change.new}`{since}"


def _says_new(change: Change) -> str:
    owner, name = change.new_place
    before = f"; before it is `{change.old}`" if change.old else ""
    return f"`{name}` of `{owner}` is there from {change.library} {change.added} on{before}"


def _tell_override(match: SignatureMatch, catalog: Catalog, surroundings: Surroundings) -> Told | None:
    """A library calls a method that the program overrides without the argument that its base class got."""
    frames, fields = match.utterance.frames, match.fields
    owner, _, method = str(fields.get("callee", "")).rpartition(".")
    if match.signature != _CALLS or not frames or "argument" not in fields or not owner:
        return None
    for one in changes(catalog):
        base, _, name = one.new_place[0].rpartition(".")
        if one.kind != "argument" or name != method or base == owner or one.new_place[1] != fields["argument"]:
            continue
        if is_of(one.library, frames[-1].library):
            said = f"{one.library} passes `{one.new_place[1]}` to `{method}` since {one.added}; `{owner}.{method}` overrides `{base}.{method}` without it"
            return Told(one, OVERRIDE, said, _fits(one, GONE, surroundings) is not False)
    return None


def _tell_deprecated(match: SignatureMatch, incident: Incident, catalog: Catalog) -> Told | None:
    """A deprecation warning that names an old name of the library that prints it."""
    utterance = match.utterance
    if "deprecated" not in utterance.flat or utterance.kind == "exception":
        return None
    record = incident.warnings[utterance.number] if utterance.kind == "warning" else None
    names = set(re.findall(r"[`'\"]([A-Za-z_][\w.]{2,80})", utterance.flat))
    for one in changes(catalog):
        place = f"{one.of}.{one.old}"
        if one.deprecated is None or not ({one.old, place} & names or f"{place}(" in utterance.flat):
            continue
        if _is_printed_by(one, names, utterance.flat, record.library if record else None):
            since = f"`{one.old}` of `{one.of}` is deprecated since {one.library} {one.deprecated}"
            return Told(one, DEPRECATED, f"{since}, and works as yet: write {_quoted(one.write)}", is_sure=False)
    return None


def _is_printed_by(change: Change, names: Iterable[str], text: str, library: str | None) -> bool:
    """Whether a warning is this library's: it stands in its file, or it names both the old and the new."""
    names = list(names)
    new = change.new_place[1]
    return is_of(change.library, library) or bool(new) and any(name.rpartition(".")[2] == new for name in names) or change.of in text
