"""What is remembered of a failure, in words: earlier sightings, and what changed since the last good run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from explainer.model.memory import FILE, Change, Changes, Seen
from explainer.render.visible import one_line

MAX_CHANGES = 4
_MONTHS = ("Jan", "Feb", "March", "April", "May", "June", "July", "Aug", "Sept", "Oct", "Nov", "Dec")


def seen_line(seen: Seen) -> str:
    """Earlier sightings in one line.

    Example: "seen before: 3 times since 2 May; solved last time by `out-of-place` (verified)".
    """
    when = day(seen.first)
    times = f"once, on {when}" if seen.times == 1 else f"{seen.times} times since {when}"
    if seen.fix is None:
        return f"seen before: {times}"
    proof = "verified" if seen.is_verified else "applied, not verified"
    done = (
        f"solved last time by `{one_line(seen.fix, 80)}`"
        if seen.is_verified
        else f"last time: `{one_line(seen.fix, 80)}`"
    )
    return f"seen before: {times}; {done} ({proof})"


def changes_heading(changes: Changes) -> str:
    """What the list of changes is of."""
    clock = time.strftime("%H:%M", time.localtime(changes.since))
    since = f"since the last good run, {day(changes.since)} {clock}"
    return f"{since}, most suspicious first" if changes.items else f"nothing that is looked at, {since}"


def change_lines(
    items: Sequence[Change], limit: int | None = MAX_CHANGES, *, hint: str = ": --verbose"
) -> Iterator[str]:
    """The changes, a line each; what is beyond the limit is counted, and the hint says how to see it."""
    shown = items if limit is None else items[:limit]
    for number, change in enumerate(shown, start=1):
        yield f"{number}. {_described(change)}" + (f" ({change.why})" if change.why else "")
    if len(shown) < len(items):
        yield f"and {len(items) - len(shown)} more{hint}"


def day(moment: float) -> str:
    """A time as a day, with the year where it is another one than now."""
    then, now = time.localtime(moment), time.localtime()
    year = f" {then.tm_year}" if then.tm_year != now.tm_year else ""
    return f"{then.tm_mday} {_MONTHS[then.tm_mon - 1]}{year}"


def _described(change: Change) -> str:
    name = one_line(change.name, 120)
    if change.kind == FILE:
        if change.now is None:
            return f"{name} is gone, or no longer read"
        return f"{name} changed" if change.before is not None else f"{name} is new, or newly changed"
    before, now = (one_line(one, 80) if one is not None else None for one in (change.before, change.now))
    if before is None:
        return f"{name} {now}".rstrip() + " is new"
    if now is None:
        return f"{name} {before}".rstrip() + " is gone"
    return f"{name} {before or 'without a value'} -> {now or 'without a value'}"
