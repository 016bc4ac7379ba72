"""Observes the evidence of a cause in an incident: one reader for each kind that rules may name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from explainer.match.field import Fields, holds
from explainer.match.interface import Told
from explainer.match.signature import SignatureMatch, compiled
from explainer.match.surroundings import Surroundings
from explainer.match.utterance import MAX_TEXT
from explainer.model.finding import Evidence
from explainer.model.incident import Frame, Incident
from explainer.model.rule import Cause, EvidenceRule

Conditions = Mapping[str, object]


class Observed(NamedTuple):
    """What a reader saw: values for the rule's sentence, and where."""

    values: Mapping[str, object]
    file: str | None = None
    line: int | None = None


class Scene(NamedTuple):
    """All that readers may look at."""

    incident: Incident
    match: SignatureMatch
    surroundings: Surroundings
    observations: Mapping[str, str]
    told: Told | None = None


def observe_cause(cause: Cause, scene: Scene) -> tuple[Evidence, ...]:
    """The evidence for and against `cause` that holds in `scene`, strongest first."""
    found = [evidence for rule in cause.evidence if (evidence := _observe(rule, scene))]
    found.extend(_observe_releases(cause, scene))
    return tuple(sorted(found, key=lambda evidence: -abs(evidence.weight)))


def _observe(rule: EvidenceRule, scene: Scene) -> Evidence | None:
    reader = _READERS.get(rule.reads)
    if reader is None:
        return None
    signature = rule.conditions.get("signature")
    wanted = [signature] if isinstance(signature, str) else signature
    if isinstance(wanted, list) and scene.match.signature not in wanted:
        return None
    fields = rule.conditions.get("fields")
    if rule.reads != "message" and isinstance(fields, Mapping) and not _fields_hold(fields, scene.match.fields):
        return None
    seen = reader(rule.conditions, scene)
    if seen is None:
        return None
    values = {**scene.match.fields, **seen.values}
    return Evidence(
        id=rule.id,
        reads=rule.reads,
        says=_say(rule.says, values),
        weight=rule.weight,
        file=seen.file,
        line=seen.line,
        proves=rule.proves,
    )


class _Lenient(dict):  # type: ignore[type-arg]
    """Leaves a value out of a sentence when the message did not name it."""

    def __missing__(self, key: str) -> str:
        return "?"


def _say(template: str, values: Mapping[str, object]) -> str:
    shown = {key: _shown(value) for key, value in values.items()}
    return template.format_map(_Lenient(shown))


def _shown(value: object) -> object:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else value


def _observe_releases(cause: Cause, scene: Scene) -> Iterator[Evidence]:
    """`[applies]`: the releases in which the cause occurs, against the version that is known."""
    for package, specifier in cause.applies.items():
        answer = scene.surroundings.satisfies(package, specifier)
        if answer is None:
            continue
        inside, known = answer
        verb = "is among the releases" if inside else "is not among the releases"
        yield Evidence(
            id=f"{package}-release",
            reads="environment",
            says=f"{package} {known.value} ({known.source}) {verb} in which this occurs ({specifier})",
            weight=0.5 if inside else -2.5,
        )


def _read_message(conditions: Conditions, scene: Scene) -> Observed | None:
    texts = [scene.match.utterance.flat]
    if conditions.get("anywhere"):
        texts = [" ".join(record.message.split())[:MAX_TEXT] for record in scene.incident.exceptions]
    groups = _search(conditions, texts)
    fields = conditions.get("fields")
    absent = bool(conditions.get("absent"))
    if groups is None:
        return Observed({}) if absent and fields is None else None
    if absent:
        return None
    if isinstance(fields, Mapping) and not _fields_hold(fields, {**scene.match.fields, **groups}):
        return None
    return Observed(groups)


def _fields_hold(wanted: Mapping[str, object], fields: Mapping[str, object]) -> bool:
    """Whether the fields meet the constraints; `"== other"` and `"!= other"` compare with another field."""
    for name, constraint in wanted.items():
        sign, _, other = constraint.partition(" ") if isinstance(constraint, str) else ("", "", "")
        if sign in ("==", "!=") and other.isidentifier():
            if name not in fields or other not in fields or (fields[name] == fields[other]) != (sign == "=="):
                return False
        elif not holds(fields.get(name), constraint):
            return False
    return True


def _search(conditions: Conditions, texts: Iterable[str]) -> Fields | None:
    """The named groups of the first text that meets `contains` and `pattern`; {} where neither is asked for."""
    literal, pattern = conditions.get("contains"), conditions.get("pattern")
    for text in texts:
        if isinstance(literal, str) and literal not in text:
            continue
        if not isinstance(pattern, str):
            return {}
        found = compiled(pattern).search(text)
        if found:
            return {key: value for key, value in found.groupdict().items() if value is not None}
    return None


def _read_warnings(conditions: Conditions, scene: Scene) -> Observed | None:
    absent = bool(conditions.get("absent"))
    for record in scene.incident.warnings:
        if "category" in conditions and record.category != conditions["category"]:
            continue
        file, code = conditions.get("file"), conditions.get("code")
        if file is not None and not _is_in_path(file, record.file or ""):
            continue
        if isinstance(code, str) and not compiled(code).search(record.code or ""):
            continue
        groups = _search(conditions, [" ".join(record.message.split())[:MAX_TEXT]])
        if groups is not None:
            seen = {"file": record.file, "line": record.line, "code": record.code, **groups}
            return None if absent else Observed(seen, record.file, record.line)
    if not absent and not {"file", "category", "code"} & set(conditions):
        groups = _search(conditions, (line.text[:MAX_TEXT] for line in scene.incident.log))
        if groups is not None and ("contains" in conditions or "pattern" in conditions):
            return Observed(groups)
    return Observed({}) if absent and _has_context(scene.incident) else None


def _has_context(incident: Incident) -> bool:
    """Whether a log is whole enough for the absence of something in it to mean anything."""
    return any(len(record.frames) >= 2 for record in incident.exceptions) and (
        bool(incident.warnings) or len(incident.log) >= 3
    )


def _read_log(conditions: Conditions, scene: Scene) -> Observed | None:
    if "metric" in conditions:
        said = scene.observations.get(str(conditions["metric"]))
        return Observed({"observed": said}) if said is not None else None
    if "fact" in conditions:
        return _read_fact(conditions, scene)
    incident = scene.incident
    texts = [line.text[:MAX_TEXT] for line in incident.log]
    texts.extend(" ".join(record.message.split())[:MAX_TEXT] for record in incident.warnings)
    if conditions.get("anywhere"):
        texts.extend(" ".join(record.message.split())[:MAX_TEXT] for record in incident.exceptions)
        texts.extend(frame.code for record in incident.exceptions for frame in record.frames if frame.code)
    groups = _search(conditions, texts)
    if conditions.get("absent"):
        return Observed({}) if groups is None and _has_context(incident) else None
    return Observed(groups) if groups is not None else None


def _read_fact(conditions: Conditions, scene: Scene) -> Observed | None:
    wanted = conditions.get("value")
    for fact in reversed(scene.incident.facts):
        if fact.name != conditions["fact"]:
            continue
        if wanted is None or holds(_number(fact.value), wanted):
            return Observed({"value": fact.value})
    return None


def _number(text: str) -> int | float | str:
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def _read_frames(conditions: Conditions, scene: Scene) -> Observed | None:
    frames = _frames(conditions, scene)
    absent = bool(conditions.get("absent"))
    hit = next((frame for frame in reversed(frames) if _is_frame(conditions, frame)), None)
    if absent:
        return Observed({}) if hit is None and len(_own_frames(scene)) >= 2 else None
    if hit is None:
        return None
    groups = _code_groups(conditions, hit)
    return Observed(
        {
            "file": hit.file,
            "line": hit.line,
            "function": hit.function,
            "code": hit.code,
            "library": hit.library,
            **groups,
        },
        hit.file,
        hit.line,
    )


def _code_groups(conditions: Conditions, frame: Frame) -> Fields:
    pattern = conditions.get("code")
    found = compiled(pattern).search(frame.code or "") if isinstance(pattern, str) else None
    return {key: value for key, value in found.groupdict().items() if value is not None} if found else {}


def _frames(conditions: Conditions, scene: Scene) -> Sequence[Frame]:
    """The frames that a rule asks for: of which stack, and at which place in it."""
    incident = scene.incident
    stack = conditions.get("stack", "exception")
    own = _own_frames(scene)
    frames = {
        "exception": own,
        "forward": incident.forward_frames,
        "induced": incident.induced_frames,
        "any": (*own, *incident.forward_frames, *incident.induced_frames),
    }[str(stack)]
    place = conditions.get("at", "any")
    users = [frame for frame in frames if frame.library is None]
    if place == "last":
        return frames[-1:]
    if place == "first":
        return frames[:1]
    if place == "user":
        return users
    if place == "last-user":
        return users[-1:]
    if place == "below-user":
        last = max((index for index, frame in enumerate(frames) if frame.library is None), default=-1)
        return frames[last + 1 :]
    return frames


def _own_frames(scene: Scene) -> tuple[Frame, ...]:
    """The frames of the exception that matched, else those of the whole incident."""
    records = scene.incident.exceptions
    utterance = scene.match.utterance
    if utterance.kind == "exception" and records[utterance.number].frames:
        return utterance.frames
    return tuple(frame for record in records for frame in record.frames)


def _is_frame(conditions: Conditions, frame: Frame) -> bool:
    file, function, code = (conditions.get(key) for key in ("file", "function", "code"))
    library = conditions.get("library")
    if isinstance(library, str):
        library = [library]
    return (
        (file is None or _is_in_path(file, frame.file))
        and (not isinstance(library, list) or frame.library in library)
        and (not isinstance(function, str) or compiled(function).fullmatch(_last_name(frame.function)) is not None)
        and (not isinstance(code, str) or compiled(code).search((frame.code or "")[:MAX_TEXT]) is not None)
    )


def _is_in_path(wanted: object, path: str) -> bool:
    """Whether a path holds the wanted part, or one of several."""
    posix = path.replace("\\", "/")
    return any(isinstance(one, str) and one in posix for one in (wanted if isinstance(wanted, list) else [wanted]))


def _last_name(function: str | None) -> str:
    """`Tensor.backward` is called `backward`."""
    return (function or "").rpartition(".")[2]


def _read_environment(conditions: Conditions, scene: Scene) -> Observed | None:
    package, ability = conditions.get("package"), conditions.get("gpu")
    if isinstance(ability, str):
        answer = scene.surroundings.ability(ability)
        if answer is None or answer[0] != conditions.get("has", True):
            return None
        return Observed({"gpu": answer[1]})
    if not isinstance(package, str):
        return None
    version = conditions.get("version")
    if not isinstance(version, str):
        known = scene.surroundings.version(package)
        return Observed({"version": known.value, "source": known.source}) if known else None
    satisfied = scene.surroundings.satisfies(package, version)
    if satisfied is None or satisfied[0] != conditions.get("has", True):
        return None
    return Observed({"version": satisfied[1].value, "source": satisfied[1].source, "package": package})


def _read_interface(conditions: Conditions, scene: Scene) -> Observed | None:
    told = scene.told
    if told is None or told.story != conditions.get("story", told.story):
        return None
    if told.is_sure != conditions.get("sure", told.is_sure):
        return None
    return Observed({"said": told.said, "library": told.change.library, "write": told.change.write})


_READERS: dict[str, Callable[[Conditions, Scene], Observed | None]] = {
    "message": _read_message,
    "frames": _read_frames,
    "warnings": _read_warnings,
    "log": _read_log,
    "environment": _read_environment,
    "live": _read_fact,
    "trace": _read_fact,
    "interface": _read_interface,
}
