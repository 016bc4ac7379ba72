"""What a tracer has seen that a failure may come from, or that raised nothing, told as plain data by kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any

from .account import operation_told
from .graph import sequence_of
from .indices import names_index
from .lent import LENDING
from .place import describe
from .silent import silent

if TYPE_CHECKING:
    from .tracer import Tracer

_FACTORS = frozenset(("MulBackward0", "DivBackward0"))
_INFINITE = re.compile(r"\binf\b|infinit|\b(?:non)?-?finite\b", re.IGNORECASE)


def told_of(
    tracer: Tracer, loss: Any, message: str, moved: Iterable[tuple[Any, Any, str]], frames: Iterable[FrameType]
) -> dict[str, Any]:
    """What a failure with a message, or none, may come from; the arguments are those of `Tracer.explain`."""
    is_last = not message and tracer.finite is not None and tracer.finite.ends_infinite()
    tracer.look_at_values(ends_infinite=is_last or _INFINITE.search(message) is not None)
    told: dict[str, Any] = {"hidden": tracer.hidden, "not_finite": tracer.first_bad}
    told["fault"] = tracer.fault or tracer.new_leaves.fault or tracer.lost_leaves.fault
    told["grown"] = tracer.growth.told()
    if "NoneType" in message:
        tracer.starved.saw_none(has_backward=bool(tracer.graphs.passes))
    if loss is None:
        told.update(_silent(tracer))
    else:
        told.update(_of_loss(tracer, loss, message, moved, frames))
    early = tracer.early.told() if "not have been used in the graph" in message else None
    if early is not None:
        told["early"] = {**operation_told(early[0]), "made": operation_told(early[1]) if early[1] else None}
    if names_index(message):
        told["indices"] = tracer.account.indices(*tracer.refused)
    if "CheckpointError" in message or "checkpoint" in message:
        told["parted"] = tracer.replays.parted()
        told["replayed"] = _replayed(tracer)
    return told


def _of_loss(
    tracer: Tracer, loss: Any, message: str, moved: Iterable[tuple[Any, Any, str]], frames: Iterable[FrameType]
) -> dict[str, Any]:
    """What the graph of a loss went through: writes, cuts, and the pass that freed it."""
    account = tracer.account
    told: dict[str, Any] = {"writes": account.written(moved) or account.named(message)}
    told["constant"] = account.constant(loss) if not loss.requires_grad else None
    told["cuts"] = account.cuts(loss) if not (loss.requires_grad or told["constant"]) else []
    passed = tracer.graphs.freed_by(loss) if "second time" in message or "freed" in message else None
    if passed is not None:
        is_turn = tracer.graphs.is_made_anew() and tracer.joined.is_another_turn(loss, passed)
        has_come_round = tracer.graphs.has_come_round() and not is_turn
        is_whole = sequence_of(_unscaled(loss.grad_fn)) in passed.nodes if loss.grad_fn is not None else False
        told["freed"] = {**describe(passed.place), "in_round": not has_come_round, "is_whole": is_whole}
        carried = account.carried(loss, passed, tracer.joined.is_waiting(passed))
        told["carried"] = carried if has_come_round else [one for one in carried if one["is_shared"]]
        if not has_come_round:
            told["joined"] = tracer.joined.told(loss, passed, frames)
            told["strayed"] = tracer.joined.strayed(loss, passed, frames)
    return told


def _unscaled(node: Any) -> Any:
    """The node of what a loss is a multiple of: a scaler makes a new product each time that it is given the loss."""
    while node.name() in _FACTORS:
        below = [one for one, _ in node.next_functions if one is not None]
        if len(below) != 1:
            break
        (node,) = below
    return node


def _silent(tracer: Tracer) -> dict[str, Any]:
    """What raises nothing."""
    told = silent(tracer)
    told["stepless"] = tracer.has_optimizer and tracer.finite is not None and not tracer.finite.may_have_stepped
    told["replayed"] = _replayed(tracer)
    told["overwritten"] = [
        {"operation": LENDING[0], **describe(place), "reader": operation_told(reader)}
        for place, reader in tracer.lent.told()
    ]
    return told


def _replayed(tracer: Tracer) -> list[dict[str, Any]]:
    return [tracer.account.replayed(one) for one in tracer.replays.others()]
