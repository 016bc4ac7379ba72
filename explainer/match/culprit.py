"""The lines that a finding points at: in the user's own code first, in the order in which they are worth a look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explainer.match.signature import SignatureMatch
from explainer.model.finding import Culprit
from explainer.model.incident import Frame, Incident

MAX_CULPRITS = 3


def find_culprits(incident: Incident, match: SignatureMatch) -> tuple[Culprit, ...]:
    """The guilty lines that the text alone gives, at most three, no line twice."""
    found: dict[tuple[str, int | None], Culprit] = {}
    for culprit in _candidates(incident, match):
        found.setdefault((culprit.file, culprit.line), culprit)
    return tuple(found.values())[:MAX_CULPRITS]


def _candidates(incident: Incident, match: SignatureMatch) -> Iterator[Culprit]:
    induced, forward = _last_user(incident.induced_frames), _last_user(incident.forward_frames)
    if induced:
        yield _culprit(induced, "the forward call whose gradient was differentiated again")
    if forward:
        traced = (one.says for one in incident.traced if (one.file, one.line) == (forward.file, forward.line))
        yield _culprit(forward, next(traced, "the forward call that anomaly mode or the compiler names"))
    if match.utterance.kind == "exception":
        record = incident.exceptions[match.utterance.number]
        # A library that catches and raises anew leaves the user's frames to the exception that it raised.
        others = (one.frames for one in reversed(incident.exceptions) if one is not record and one.rank == record.rank)
        frame = _last_user(record.frames) or next((one for frames in others if (one := _last_user(frames))), None)
        if frame:
            is_raised = bool(record.frames) and record.frames[-1] is frame
            yield _culprit(frame, "raised here" if is_raised else "the last line of your own code before the failure")
        elif record.frames:
            yield _culprit(record.frames[-1], "raised here; no frame of your own code is in this log")
    elif match.utterance.kind == "warning":
        warning = incident.warnings[match.utterance.number]
        if warning.file:
            yield Culprit(file=warning.file, line=warning.line, why="the warning was raised here")


def _last_user(frames: Sequence[Frame]) -> Frame | None:
    """The deepest frame of the user's own code that is more than an entry point of a launcher."""
    return next((frame for frame in reversed(frames) if frame.library is None), None)


def _culprit(frame: Frame, why: str) -> Culprit:
    return Culprit(file=frame.file, line=frame.line, function=frame.function, code=frame.code, mark=frame.mark, why=why)
