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
_CALLS, _ATTRIBUTES = "call-does-not-fit", "attribute-missing"
_IMPORTS, _LAZY = "name-not-in-library", "lazy-import-failed"


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
    for asked in _asked(match):
        found = [
            *(
                _told(one, GONE, asked, catalog, surroundings)
                for one in gone(catalog, asked.of, asked.name)
                if one.removed
            ),
            *(_told(one, TOO_NEW, asked, catalog, surroundings) for one in came(catalog, asked.of, asked.name)),
        ]
        if found:
            return min(found, key=lambda told: (told.story == CONTRADICTED, not told.is_sure))
    if match.utterance.kind != "exception":
        return _tell_deprecated(match, incident, catalog)
    return _tell_override(match, catalog) if match.signature == _CALLS else None


def propose(told: Told) -> Fix:
    """The fix that the table gives: what to write instead, or which release to take."""
    change = told.change
    title = _upgrade(change) if told.story == TOO_NEW else _instead(change)
    because = change.note or f"{change.library} {change.added or change.removed or change.deprecated} changed it"
    return Fix(id="name-of-this-release", title=title, applicability="display", kind="advice", because=because)


_NOTHING = "nothing: "


def _instead(change: Change) -> str:
    if change.write.startswith(_NOTHING):
        return f"Leave `{change.old}` out: {change.write.removeprefix(_NOTHING)}"
    return f"{'Write' if change.write.startswith('`') else 'Use'} {change.write}"


def _upgrade(change: Change) -> str:
    title = f"Upgrade {change.library} to {change.added} or later: `pip install -U {distributions(change.library)[0]}`"
    if change.old is not None:
        return f"{title}; or write `{change.old}`, the earlier name"
    if change.write.startswith("an upgrade"):
        return title
    return f"{title}; or {change.write.removeprefix(_NOTHING)}"


def _asked(match: SignatureMatch) -> Iterator[_Asked]:
    """What a message asks for, under each owner that it may mean."""
    fields = {key: str(value) for key, value in match.fields.items()}
    caller = match.utterance.frames[-1] if match.utterance.frames else None
    if match.signature == _CALLS and "argument" in fields:
        for owner in _callees(fields["callee"], match.utterance.frames):
            yield _Asked(owner, fields["argument"], caller)
    elif match.signature == _ATTRIBUTES:
        yield _Asked(fields["owner"], fields["name"], caller)
    elif match.signature in (_IMPORTS, _LAZY):
        yield from _imports(fields if match.signature == _IMPORTS else _inner(fields.get("inner", "")), caller)
    elif "arguments" in fields and "HfArgumentParser" in match.utterance.flat:
        for name in re.findall(r"['\"](?:--)?(\w+)", fields["arguments"]):
            yield _Asked("TrainingArguments", name, caller)
    elif "name" in fields and match.utterance.flat.startswith("`np."):
        yield _Asked("numpy", fields["name"], caller, is_installed=True)


def _inner(text: str) -> dict[str, str]:
    """The name that is missing in a failure that another message quotes."""
    for pattern in (
        r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'",
        r"No module named '(?P<module>\w+\.[\w.]+)'",
    ):
        found = re.search(pattern, text)
        if found:
            return {**found.groupdict(), "file": "site-packages"}
    return {}


def _callees(callee: str, frames: Sequence[Frame]) -> Iterator[str]:
    """What the callee of a message may be in the table.

    `TrainingArguments.__init__` is the class. A bare `__init__` (Python 3.9 and earlier) is what the calling line names
    before a parenthesis. What `from_pretrained` does not know it hands to the model's `__init__`.
    """
    parts = [part for part in callee.split(".") if part != "<locals>"]
    if parts[-1] == "__init__" and any(_is_loading(frame) for frame in frames):
        yield "PreTrainedModel.from_pretrained"
    if parts == ["__init__"]:
        yield from re.findall(r"([A-Z]\w{2,80})\(", (frames[-1].code or "")[:2000] if frames else "")
    elif parts[-1] == "__init__":
        yield parts[-2]
    else:
        yield ".".join(parts[-2:])
        if len(parts) == 1 and parts[0][0].islower() and frames:
            yield from re.findall(rf"([\w.]{{2,80}}\.{parts[0]})\(", (frames[-1].code or "")[:2000])


def _is_loading(frame: Frame) -> bool:
    return frame.library == "transformers" and (frame.function or "").rpartition(".")[2] == "from_pretrained"


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
        return Told(
            change, CONTRADICTED, f"{base}; but this is {change.library} {known.value} ({known.source})", is_sure=False
        )
    if known is not None and fits:
        base += f"; this is {change.library} {known.value} ({known.source})"
    return Told(change, story, base, _is_sure(change, asked, catalog, fits=bool(fits)))


def _is_sure(change: Change, asked: _Asked, catalog: Catalog, *, fits: bool) -> bool:
    """Whether the name can only be the library's: it was imported from it, or the release fits and no other has it.

    Programs name layers of their own as torch names its layers, so one of torch's must be called as an attribute.
    """
    if change.kind == "import":
        return asked.is_installed or (fits and is_of(change.library, plain_module(asked.of).partition(".")[0]))
    owners = {one.library for one in changes(catalog) if change.of in (one.of, one.new_place[0])}
    code = asked.caller.code or "" if asked.caller else ""
    by_library = asked.caller is not None and is_of(change.library, asked.caller.library)
    is_named = change.library != "torch" or f".{asked.of.rpartition('.')[2]}(" in code
    return len(owners) == 1 and (by_library or (fits and is_named))


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
    when = (
        f"was removed in {change.library} {change.removed}" if change.removed else f"is deprecated in {change.library}"
    )
    said = f"`{change.old}` of `{change.of}` {when}"
    if change.new is None:
        return said
    since = f" since {change.added}" if change.added else ""
    return f"{said}; it is `{change.new}`{since}"


def _says_new(change: Change) -> str:
    owner, name = change.new_place
    before = f"; before it is `{change.old}`" if change.old else ""
    return f"`{name}` of `{owner}` is there from {change.library} {change.added} on{before}"


def _tell_override(match: SignatureMatch, catalog: Catalog) -> Told | None:
    """A library calls a method that the program overrides without the argument that its base class got."""
    frames, fields = match.utterance.frames, match.fields
    owner, _, method = str(fields.get("callee", "")).rpartition(".")
    if not frames or "argument" not in fields or not owner:
        return None
    for one in changes(catalog):
        base, _, name = one.new_place[0].rpartition(".")
        if one.new is None or name != method or base == owner or one.new_place[1] != fields["argument"]:
            continue
        if is_of(one.library, frames[-1].library):
            said = f"{one.library} passes `{one.new_place[1]}` to `{method}` since {one.added}; `{owner}.{method}` overrides `{base}.{method}` without it"
            return Told(one, OVERRIDE, said, is_sure=True)
    return None


def _tell_deprecated(match: SignatureMatch, incident: Incident, catalog: Catalog) -> Told | None:
    """A deprecation warning that names an old name of the library that prints it."""
    utterance = match.utterance
    if "deprecated" not in utterance.flat:
        return None
    record = incident.warnings[utterance.number] if utterance.kind == "warning" else None
    names = set(re.findall(r"[`'\"]([A-Za-z_][\w.]{2,80})", utterance.flat))
    for one in changes(catalog):
        place = f"{one.of}.{one.old}"
        if one.deprecated is None or not ({one.old, place} & names or f"{place}(" in utterance.flat):
            continue
        if _is_printed_by(one, names, utterance.flat, record.library if record else None):
            since = f"`{one.old}` of `{one.of}` is deprecated since {one.library} {one.deprecated}"
            return Told(one, DEPRECATED, f"{since}, and works as yet: write {one.write}", is_sure=False)
    return None


def _is_printed_by(change: Change, names: Iterable[str], text: str, library: str | None) -> bool:
    """Whether a warning is this library's: it stands in its file, or it names both the old and the new."""
    names = list(names)
    new = change.new_place[1]
    return (
        is_of(change.library, library)
        or (bool(new) and any(name.rpartition(".")[2] == new for name in names))
        or change.of in text
    )
