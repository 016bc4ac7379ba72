"""State dicts that were refused and trained without: as a fault in words, and as the exception that the program kept to itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from explainer.ingest.text import read_text
from explainer.model.incident import CAUGHT, REFUSED, Fact, Incident
from explainer.model.verification import GOES_WITHOUT, ProcessReport, Refused

_KEYS = re.compile(r"(Missing|Unexpected) key\(s\) in state_dict: ([^\n]*)")
_SIZES = re.compile(r"size mismatch for ([^\s:]+):")
CAUGHT_SO = "the program caught this, and trained on without the state"


def why_refused(one: Refused) -> str:
    """What the error said, in short: `missing keys 0.weight and 3 more, unexpected keys module.0.weight and 3 more`."""
    told = {kind.lower(): re.findall(r'"([^"]+)"', keys) for kind, keys in _KEYS.findall(one.message)}
    parts = [f"{kind} keys {_few(keys)}" for kind, keys in told.items() if keys]
    if sizes := _SIZES.findall(one.message):
        parts.append(f"other sizes of {_few(sizes)}")
    return ", ".join(parts)


def _few(keys: Sequence[str]) -> str:
    return keys[0] if len(keys) == 1 else f"{keys[0]} and {len(keys) - 1} more"


def with_refused(
    incidents: list[Incident], processes: Sequence[ProcessReport], silent: Sequence[str]
) -> list[Incident]:
    """What was printed, with the exception of a state that was refused, where nothing else is wrong: as if it had ended the run."""
    found = next(_refused(processes), None)
    if found is None or not incidents or not all(GOES_WITHOUT in one for one in silent):
        return incidents
    raised = next(iter(read_text(found.text)), Incident())
    facts = (Fact(name=CAUGHT, value=CAUGHT_SO), Fact(name=REFUSED, value=silent[0]))
    return [replace(incidents[-1], exceptions=raised.exceptions, facts=(*incidents[-1].facts, *facts))]


def _refused(processes: Sequence[ProcessReport]) -> Iterator[Refused]:
    return (one for process in processes for one in process.refused)
