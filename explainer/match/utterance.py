"""What an incident says, one text after another, with how much each weighs as the root of the failure."""

from __future__ import annotations

from typing import NamedTuple

from explainer.model.incident import ExceptionRecord, Frame, Incident

MAX_TEXT = 4000
_FATAL, _BARE, _WARNING, _LOG, _METRICS = 4.0, 3.6, 1.0, 2.0, 2.5
_LATER_CHAIN, _MAX_LATER, _WRAPPER, _GROUP, _CONTEXT, _RERAISED = 0.8, 2.4, 1.0, 1.5, 0.5, 2.0
_SHORT = 12
TEARDOWN = ("KeyboardInterrupt", "SystemExit", "BrokenPipeError", "ConnectionResetError", "GeneratorExit", "EOFError")


class Utterance(NamedTuple):
    """One text of an incident. `flat` has its white space folded, `squeezed` its line breaks removed (a hard wrap).

    `kind` is "exception", "warning", "log" or "metrics"; `number` counts within that kind; `salience` is in log-odds.
    """

    kind: str
    number: int
    type: str
    flat: str
    squeezed: str
    salience: float
    frames: tuple[Frame, ...] = ()


def utterances_of(incident: Incident) -> list[Utterance]:
    """Everything that an incident's exceptions and warnings say."""
    said = [
        _utterance("exception", index, record.type, _said(record), salience)._replace(frames=_frames(incident, index))
        for index, (record, salience) in enumerate(zip(incident.exceptions, _saliences(incident), strict=True))
        if record.type or record.message
    ]
    said.extend(
        _utterance("warning", index, record.category, record.message, _WARNING)
        for index, record in enumerate(incident.warnings)
    )
    return said


def utterance_of(record: ExceptionRecord) -> Utterance:
    """What one exception says, by itself."""
    return _utterance("exception", 0, record.type, _said(record), _FATAL)._replace(frames=record.frames)


def _frames(incident: Incident, index: int) -> tuple[Frame, ...]:
    """The frames of an exception, below those of the process that asked a worker for a result and raised its exception again."""
    records = incident.exceptions
    following = records[index + 1] if index + 1 < len(records) else None
    above = following.frames if following is not None and following.link == "reraised" else ()
    return (*above, *records[index].frames)


def _said(record: ExceptionRecord) -> str:
    """The message; of an assertion that gives none the line itself: `assert not torch.isnan(out).any()`.

    A pool that cannot send a worker's result prints all of the result first, and why at the end.
    """
    if record.type.rpartition(".")[2] == "MaybeEncodingError":
        return record.message[max(record.message.rfind("Reason: "), 0) :]
    if record.message or record.type.rpartition(".")[2] != "AssertionError" or not record.frames:
        return record.message
    code = (record.frames[-1].code or "").strip()
    return code if code.startswith("assert ") else record.message


def log_utterances(incident: Incident) -> list[Utterance]:
    """The lines that belong to no traceback; where a log is but a few of them, also all in one, as a message may be."""
    lines = [_utterance("log", index, "", line.text, _LOG) for index, line in enumerate(incident.log)]
    if 2 <= len(lines) <= _SHORT and not incident.exceptions:
        lines.append(_utterance("log", len(lines), "", "\n".join(line.text for line in incident.log), _LOG))
    return lines


def metric_utterance(observation: str) -> Utterance:
    """What the metrics show, under the name of the observation."""
    return Utterance("metrics", 0, "", observation, observation, _METRICS)


# Forums turn straight quotes into curly ones.
_CURLY = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")


def _utterance(kind: str, index: int, name: str, text: str, salience: float) -> Utterance:
    text = text[: 2 * MAX_TEXT]
    text = text if text.isascii() else text.translate(_CURLY)
    flat = " ".join(text.split())[:MAX_TEXT]
    squeezed = text.replace("\r", "").replace("\n", "")[:MAX_TEXT] if "\n" in text.strip() else flat
    return Utterance(kind, index, name, flat, squeezed, salience)


def _saliences(incident: Incident) -> list[float]:
    """How much each exception weighs as the origin: earlier ones more, wrappers, groups and teardown less."""
    found: list[float] = []
    chains = -1
    records = incident.exceptions
    for index, record in enumerate(records):
        is_first = record.link is None and record.parent is None
        chains += is_first and bool(record.type)
        weight = (_FATAL if record.from_traceback else _BARE) - min(_LATER_CHAIN * max(chains, 0), _MAX_LATER)
        following = records[index + 1] if index + 1 < len(records) else None
        weight -= _link_cost(record)
        if following is not None and following.link == "during_handling":
            weight -= _CONTEXT
        if any(other.parent == index for other in records):
            weight -= _GROUP
        if record.type.rpartition(".")[2] in TEARDOWN:
            weight -= 3.0
        if incident.rank is not None and record.rank is not None and record.rank != incident.rank:
            weight -= 0.5
        found.append(weight)
    return found


def _link_cost(record: ExceptionRecord) -> float:
    if record.link == "direct_cause":
        return _WRAPPER
    return _RERAISED if record.link == "reraised" else 0.0
