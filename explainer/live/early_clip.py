"""Clips that run before the backward whose gradients they were to bound: no error, and every step is made with unbounded ones.

`zero_grad()`, clip, `backward()`, `step()`: there is nothing to clip yet. Behind the step, before `zero_grad()`, there are only
gradients that a step was made with already. Told of a line all of whose clips came so, where its limit would once have counted.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .frame import leave_no_frame
from .trace.place import Place, Places, describe

LEAST = 2
MAX_LINES, MAX_CLIPS = 16, 64
MAX_LOOKED_AT = 64
FIRST, LATER = 20, frozenset((30, 100, 300, 1000, 3000, 10_000))  # which early clips of a line are weighed
_Reference = Callable[[], Any]


@dataclass(slots=True)
class _Line:
    """A line that clips. `is_over` where its limit is below what a step was made with."""

    place: Place
    early: int = 0
    is_meant: bool = False
    is_over: bool = False


@dataclass(slots=True)
class _Seen:
    """A parameter's gradient at one time: which tensor it was, and how often that had been written."""

    parameter: _Reference
    gradient: _Reference
    version: int

    def is_now(self, parameter: Any) -> bool:
        """Whether the gradient is there as it was."""
        return self.gradient() is parameter.grad and self.version == _version(parameter.grad)


@dataclass(slots=True)
class _Clip:
    """What a line's latest clip left: all of its gradients, those of them that were zero, and its limit."""

    line: _Line
    seen: list[_Seen]
    zeros: set[int]
    is_fresh: bool
    limit: tuple[float, float | None]


class EarlyClips:
    """Holds the gradients that a clip found against those of the step before and those of the step that follows."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._places = Places(torch)
        self._lines: dict[tuple[int, int], _Line] = {}  # by the identity of its code, which `place` keeps
        self._clips: dict[tuple[int, int], _Clip] = {}
        self._spent: dict[int, _Seen] = {}
        self._steps = 0
        self.told: list[dict[str, Any]] = []  # kept up to date, since a run that fails is not asked at its end

    def watch(self) -> None:
        """Look at torch's own clips, by which other libraries clip too."""
        utils = self._torch.nn.utils
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            watched = self._clipping(getattr(utils, name), is_norm=name == "clip_grad_norm_")
            for module in (utils, utils.clip_grad):
                setattr(module, name, watched)

    def before_step(self, optimizer: Any) -> None:
        """An optimizer is about to step: whether a backward has run since its gradients were clipped."""
        if not self._clips:
            return
        with suppress(Exception):  # a gradient may be of a kind that does not tell what it holds
            owned = {id(one) for group in optimizer.param_groups for one in group["params"]}
            mine = [key for key, one in self._clips.items() if any(id(each.parameter()) in owned for each in one.seen)]
            clips = [self._clips.pop(key) for key in mine]
            for one in clips if not any(one.is_fresh for one in clips) else ():
                if _is_renewed(one):
                    one.line.early += 1
                    self._weigh(one)
            self._tell()

    def after_step(self, optimizer: Any) -> None:
        """Keep the gradients that a step was made with; no longer once every line was seen to clip in its place."""
        self._steps += 1
        if self._steps <= LEAST or self._is_open():
            for one in (each for group in optimizer.param_groups for each in group["params"]):
                if one.grad is not None:
                    self._spent[id(one)] = _seen(one)

    def _tell(self) -> None:
        """The lines that clipped before each step, and never what it was made with."""
        self.told[:] = [
            {"steps": one.early, **describe(one.place)}
            for one in self._lines.values()
            if one.early >= LEAST and one.is_over and not one.is_meant
        ]

    def _clipping(self, clip: Callable[..., Any], *, is_norm: bool) -> Callable[..., Any]:
        @functools.wraps(clip)
        def clipped(parameters: Any, *arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            given = parameters if isinstance(parameters, self._torch.Tensor) else list(parameters)
            noted = None
            with suppress(Exception):  # the program may give anything
                noted = self._note(given, _limit_of(arguments, keywords, is_norm=is_norm), self._places.here(2))
            try:
                result = clip(given, *arguments, **keywords)
            except Exception as error:
                leave_no_frame(error)
                raise
            for one in noted.seen if noted is not None else ():  # the clip itself has written them
                one.version = _version(one.gradient())
            return result

        return clipped

    def _note(self, given: Any, limit: tuple[float, float | None], place: Place | None) -> _Clip | None:
        """What a clip is about to take; None where that is not to be judged."""
        line = self._line(place)
        trains = [one for one in ([given] if isinstance(given, self._torch.Tensor) else given) if one.requires_grad]
        if line is None or not trains or math.isinf(limit[0]):
            return None
        new = [one for one in trains if one.grad is not None and not self._is_spent(one)]
        is_fresh = any(bool(_values(one.grad).any()) for one in new[:MAX_LOOKED_AT])
        if is_fresh and not line.is_meant:
            line.is_meant = True
            self._tell()
        clip = _Clip(line, [_seen(one) for one in trains], {id(one) for one in new}, is_fresh, limit)
        if self._is_open() and len(self._clips) < MAX_CLIPS:
            self._clips[id(line), id(trains[0])] = clip
        return clip

    def _line(self, place: Place | None) -> _Line | None:
        """What is known of a line; None where it tells nothing more, since all are known to clip in their place."""
        if place is None:
            return None
        key = id(place[0]), place[1]
        if key not in self._lines:
            if len(self._lines) >= MAX_LINES:
                return None
            self._lines[key] = _Line(place)
        return self._lines[key] if self._is_open() else None

    def _is_open(self) -> bool:
        return any(not one.is_meant for one in self._lines.values())

    def _is_spent(self, parameter: Any) -> bool:
        """Whether a step was made with the gradient that there is, and no backward has added to it since."""
        seen = self._spent.get(id(parameter))
        return seen is not None and seen.is_now(parameter)

    def _weigh(self, clip: _Clip) -> None:
        """Whether the gradients that a step is about to be made with are beyond the limit."""
        line, (limit, norm) = clip.line, clip.limit
        if line.is_over or not (line.early <= FIRST or line.early in LATER):
            return
        measure = self._torch.linalg.vector_norm
        gradients = [one.grad for seen in clip.seen if (one := seen.parameter()) is not None and one.grad is not None]
        sizes = [float(measure(_values(one).float(), math.inf if norm is None else norm)) for one in gradients]
        whole = max(sizes, default=0.0) if norm is None else float(measure(self._torch.tensor(sizes), norm))
        line.is_over = whole > limit


def _is_renewed(clip: _Clip) -> bool:
    """Whether the gradients come from a backward behind the clip, and hold nothing of what it found."""
    is_new = False
    for seen in clip.seen:
        parameter = seen.parameter()
        if parameter is None or parameter.grad is None or seen.is_now(parameter):
            continue
        if seen.gradient() is parameter.grad and id(parameter) not in clip.zeros:
            return False  # a backward may have added to it
        is_new = True
    return is_new


def _seen(parameter: Any) -> _Seen:
    gradient = parameter.grad
    is_there: _Reference = weakref.ref(gradient) if gradient is not None else _nothing
    return _Seen(weakref.ref(parameter), is_there, _version(gradient))


def _values(gradient: Any) -> Any:
    """This rank's part of a gradient: to ask for all of it would wait for the others."""
    own = gradient.detach()
    return own.to_local() if hasattr(own, "to_local") else own


def _nothing() -> None:
    return None


def _version(gradient: Any) -> int:
    return gradient._version if gradient is not None else -1  # noqa: SLF001


def _limit_of(arguments: tuple[Any, ...], keywords: dict[str, Any], *, is_norm: bool) -> tuple[float, float | None]:
    """The limit of a clip, and the norm that it bounds; None where it bounds each value."""
    limit = arguments[0] if arguments else keywords["max_norm" if is_norm else "clip_value"]
    norm = keywords.get("norm_type", arguments[1] if len(arguments) > 1 else 2.0)
    return float(limit), float(norm) if is_norm else None
