"""What the graph of a step took over from a step whose backward is over: where that was made, and where it was taken up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .flow import Flow, Operation

MAX_LOOKED_AT = 20_000
_JOINS = frozenset(
    {"stack", "cat", "concat", "concatenate", "hstack", "vstack", "dstack", "column_stack", "block_diag"}
)


@dataclass(frozen=True, slots=True)
class Carried:
    """An operation of an earlier step, and the first of this step that took its result with its graph.

    `is_used` where its own step computed with that result too; `is_mixed` where the line that took it up also ran on values
    of this step, as a loop over time does. `is_once` where it is no state: it was made once, and each step takes it up.
    """

    made: Operation
    taken: Operation
    is_used: bool
    is_mixed: bool
    is_once: bool = False


def carried_over(flow: Flow, loss: int, at: int, begun: int) -> Iterator[Carried]:
    """What the graph under an operation took over from before the operation with the number `at`, each pair of lines once.

    This step began with the operation `begun`; where there were steps between the two, behind `at`.
    What its own step took up on the same line and no later step made anew is no state: it was made once, for all steps.
    """
    told = set()
    queue, seen = [loss], {loss}
    pairs: list[tuple[int, int]] = []
    while queue and len(seen) < MAX_LOOKED_AT:
        number = queue.pop()
        operation = flow.get(number)
        if operation is None or not operation.gave_grad:
            continue
        for one in operation.inputs:
            made = flow.get(one)
            if one < at and made is not None and made.gave_grad:
                pairs.append((one, number))
            elif one >= at and one not in seen:
                seen.add(one)
                queue.append(one)
    takers = {number for _, number in pairs}
    for one, number in sorted(pairs):
        made, taken = flow.get(one), flow.get(number)
        if made is None or taken is None or (made.place, taken.place) in told:
            continue
        earlier = [each for before, each in flow.consumers(one) if before < at and each.gave_grad]
        is_alike = any(each.place == taken.place for each in earlier)
        if is_alike and not _is_made_again(made, taken, taken.inputs.index(one), flow, at):
            if number < at:  # two losses of one step: both were there when the first was differentiated
                continue
            told.add((made.place, taken.place))
            yield Carried(made, taken, is_used=True, is_mixed=False, is_once=True)
            continue
        told.add((made.place, taken.place))
        beside = (each for since, each in flow.since(begun) if since not in takers)
        is_mixed = any(each.place == taken.place and each.name == taken.name and each.took_grad for each in beside)
        yield Carried(made, taken, bool(earlier), is_mixed)


def _is_made_again(made: Operation, taken: Operation, place: int, flow: Flow, at: int) -> bool:
    """Whether the line that made a value ran again since for the same use: a pool or memory of it holds some of each step.

    What it made for another argument is no state's successor: one network gives a loss its prediction in each step, and gave
    it the target once.
    """
    again = [number for number, one in flow.since(at) if one.place == made.place and one.name == made.name]
    uses = [
        (number, each)
        for number in again
        for _, each in flow.consumers(number)
        if each.place == taken.place and each.name == taken.name
    ]
    if not uses and taken.name not in _JOINS:
        return False  # the line takes the same value in both steps, and nothing of the later one
    if not uses or len(taken.inputs) != 2 or taken.name in _JOINS:
        return bool(again)
    return any(each.inputs[place : place + 1] == (number,) for number, each in uses)
