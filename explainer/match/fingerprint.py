"""The fingerprint of a failure: what failed and where, without what differs from one run of it to the next.

Left out are ranks, folders, line numbers, addresses, seeds, sizes and counts, and what releases of torch word otherwise.
Kept are the cause, the exception's type, the words of its message, and the user's own function and line of code.
"""

from __future__ import annotations

import re
from functools import cache

from explainer.digest import digest
from explainer.model.finding import Finding
from explainer.model.incident import ExceptionRecord, Frame, Incident

VERSION = "g1"
_MAX_MESSAGE = 2000
_ENDED_BY_A_PERSON = frozenset(("KeyboardInterrupt", "SystemExit"))


def fingerprint(incident: Incident, finding: Finding | None) -> str | None:
    """What two sightings of one failure have in common: `g1-` and twelve hexadecimal digits; None where nothing failed.

    Args:
        incident: the failure as read.
        finding: the first finding for it, where there is one.

    Returns:
        The same text for the same failure, whichever rank, machine, folder or batch printed it.

    Example:
        >>> from explainer.model.incident import ExceptionRecord
        >>> fingerprint(Incident(exceptions=(ExceptionRecord(type="ValueError", message="seed 3"),)), None)
        'g1-1c3b2e382693'
    """
    record = failed_record(incident, finding)
    if record is not None and record.type:
        if _name(record.type) in _ENDED_BY_A_PERSON:
            return None
        said, frame = (_name(record.type), template(record.message)), last_frame(record, incident)
        if _name(record.type) == "RecursionError":  # which call of the circle hits the limit is chance
            said, frame = (_name(record.type), ""), None
    elif finding is not None:
        said, frame = ("", ""), None
    else:
        return None
    parts = (finding.cause if finding is not None else "", *said, *_place(frame))
    return f"{VERSION}-{digest(chr(0).join(parts))}"


def failed_record(incident: Incident, finding: Finding | None) -> ExceptionRecord | None:
    """The exception that a finding speaks of, by the lines that it names; else the one that ended the first chain."""
    named = [record for record in incident.exceptions if record.type]
    lines = {(one.file, one.line) for one in finding.culprits} if finding is not None else set()
    for record in named:
        frame = last_frame(record, incident)
        if frame is not None and (frame.file, frame.line) in lines:
            return record
    chain = named[:1]
    for record in named[1:]:
        if record.link not in ("direct_cause", "during_handling"):
            break
        chain.append(record)
    if not chain:
        return incident.exceptions[0] if incident.exceptions else None
    return chain[0] if chain[-1].link == "direct_cause" else chain[-1]


def last_frame(record: ExceptionRecord, incident: Incident) -> Frame | None:
    """The deepest frame of the user's own code: of the exception, else of the chain that it belongs to; else of a library."""
    own = next((one for one in reversed(record.frames) if one.library is None), None)
    if own is not None or record.frames:
        return own or record.frames[-1]
    frames = [one for other in incident.exceptions for one in other.frames if one.library is None]
    return frames[-1] if frames else None


def template(message: str) -> str:
    """A message without what varies: its first sentence, with `#` for numbers, sizes, addresses and folders.

    Example:
        >>> template("mat1 and mat2 shapes cannot be multiplied (4x16 and 32x8)")
        'mat1 and mat2 shapes cannot be multiplied (# and #)'
    """
    text = message[:_MAX_MESSAGE].strip()
    # What follows the first sentence is advice, which releases word anew and settings switch on and off.
    text = re.split(r"(?<=[^\s.])\. (?=[A-Z])|\n", text, maxsplit=1)[0]
    for pattern, put in _steps():
        text = pattern.sub(put, text)
    return " ".join(text.lower().split()).rstrip(" .:")


@cache
def _steps() -> tuple[tuple[re.Pattern[str], str], ...]:
    """What is put in place of what, in this order."""
    number = r"[-+]?\d+(?:\.\d+)*(?:[eE][-+]?\d+)?"
    words = "rank|worker|node|host|gpu|cuda|hip|xpu|npu|pid|process|thread|step|epoch|iter|iteration|batch|seed|tmp|device|index"
    return tuple(
        (re.compile(pattern), put)
        for pattern, put in (
            (r"(?i)\b0x[0-9a-f]+\b", "#"),
            (r"(?:[A-Za-z]:)?(?:[\\/][\w.+@~=-]+)+[\\/](?=[\w.+@~=-])", ""),  # folders, up to the name that they hold
            (r"(?<=[/\\])tmp[\w]{6,}|\btmp\w{6,}", "tmp#"),
            (r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", "#"),
            (r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b", "#"),
            # torch < 2.13 prints the name of the autograd node, 2.13 that of the operation
            (r"(?<=[a-z])Backward\d+\b", ""),
            (r"\b\d+(?:\s?[x×]\s?\d+)+\b|\bs\d+\b", "#"),  # sizes; torch.compile names those that vary s0, s1
            (rf"{number}\s?(?:[KMGTP]i?B|bytes?|ms|seconds?|s)\b", "#"),
            (r"\b\d+(?:\.\d+)+(?:(?:a|b|rc|\.dev|\.post)\d+)?(?:\+[\w.]+)?\b", "#"),
            (rf"(?i)\b({words})([ _:=-]{{0,2}})\d+\b", r"\1\2#"),
            (rf"(?<![A-Za-z_\d]){number}(?![A-Za-z_])", "#"),
            (r"[\[(]\s*#(?:\s*,\s*#)*\s*,?\s*[\])]", "#"),
            (r"#(?:\s*[,x]\s*#)+", "#"),
        )
    )


def _place(frame: Frame | None) -> tuple[str, str, str]:
    """File, function and line of code, without folders and spaces; of a notebook's cell without its number."""
    if frame is None:
        return "", "", ""
    file = frame.file.replace("\\", "/").rpartition("/")[2]
    if re.match(r"<ipython-input|Cell In|ipykernel|<cell|In \[", file) or "ipykernel_" in frame.file:
        file = "cell"
    function = (frame.function or "").rpartition(".")[2]
    if frame.library is not None:  # the lines of a library are its release's
        return frame.library, function, ""
    code = "".join((frame.code or "").strip().partition("\n")[0].split())
    return file, function, code


def _name(type_name: str) -> str:
    """The last part of an exception's name: releases move classes between modules."""
    return type_name.rpartition(".")[2]
