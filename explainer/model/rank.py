"""The ranks of a job: what each process told of itself, and which of them failed first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from explainer.model.finding import Culprit

FIRST, VICTIM, ENDED, WAITING, ELSEWHERE, DONE = "first", "victim", "ended", "waiting", "elsewhere", "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One collective that a rank entered: the how many-th of that process, with the shape of what it was given."""

    op: str
    number: int
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    group: str | None = None
    is_done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """One rank in the story of a failure.

    `role` is "first", "victim" (it failed because of another), "ended" (it was ended from outside), "waiting" or "elsewhere"
    (in a hang), or "done". `after` are the seconds between the first failure and this one; `steps` its optimizer steps.
    """

    rank: int
    role: str
    what: str = ""
    node: str | None = None
    collective: str | None = None
    after: float | None = None
    steps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStory:
    """Which rank failed first, who failed after it, and in what one differs from the others (`odd`).

    `is_sure` where the exception itself, or clocks that can be compared, decide; `reads` is "live" or "log". `place` is
    where a rank stood that raised nothing.
    """

    first: int | None = None
    is_sure: bool = False
    reads: str = "live"
    says: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    rows: tuple[RankRow, ...] = ()
    place: Culprit | None = None


def name_ranks(ranks: Iterable[int]) -> str:
    """Ranks in words: "rank 2", "ranks 0, 1, 3", "ranks 0-2, 4-63"."""
    numbers = sorted(set(ranks))
    spans: list[list[int]] = []
    for one in numbers:
        if spans and one == spans[-1][-1] + 1 and len(numbers) > 4:
            spans[-1][1:] = [one]
        else:
            spans.append([one])
    told = [f"{one[0]}-{one[-1]}" if len(one) > 1 else str(one[0]) for one in spans]
    more = f" and {len(told) - 12} more spans" if len(told) > 12 else ""
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(told[:12])}{more}"
