"""Parameters that a program makes anew for each step, in a forward or a loss: they get gradients, and no optimizer ever trains them.

Told is a line whose parameters nobody but the graph holds when the backward comes, so that nobody can read their gradients; or that
a forward puts into its module in the place of those of the step before. Not what is copied, stepped by an optimizer of its own, or
differentiated by `autograd.grad`, as fast weights and codes are that a program fits by itself.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from .frame import leave_no_frame
from .name import outermost
from .trace.place import Place, Places, describe

LEAST, ROUNDS = 2, 3
MAX_MADE, MAX_LINES, MAX_DEPTH = 256, 16, 80


@dataclass(slots=True)
class _Line:
    """A line that makes parameters: of what class the object is that they are for, in how many steps."""

    place: Place
    kind: str
    rounds: set[int] = field(default_factory=set)
    is_meant: bool = False


@dataclass(slots=True)
class _Made:
    """A parameter that was made since the last step."""

    parameter: Callable[[], Any]
    line: _Line
    in_forward: bool
    is_held: bool = False
    trains: bool = False


class Renewed:
    """Looks at what is made between a few of the first steps."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._places = Places(torch)
        self._first: Callable[[], Any] | None = None
        self._round = 0
        self._made: list[_Made] = []
        self._lines: dict[tuple[int, int], _Line] = {}  # by the identity of its code, which `place` keeps
        self._unheld = 0
        self._undo: list[Callable[[], None]] = []
        self.told: list[dict[str, Any]] = []

    def before_step(self, optimizer: Any) -> None:
        """An optimizer is about to step: what was made for this step and has gradients, which it does not own."""
        if self._round > ROUNDS:
            return
        with suppress(Exception):  # what a program makes may refuse to be looked at
            self._saw_owner(optimizer)
            if self._first is None:
                self._first = weakref.ref(optimizer)
                self._begin()
            elif self._first() is optimizer:
                self._judge()
                self._round += 1
                self.told[:] = [
                    {"kind": one.kind, **describe(one.place)}
                    for one in self._lines.values()
                    if len(one.rounds) >= LEAST and not one.is_meant
                ]
        if self._round >= ROUNDS:
            self.end()

    def _begin(self) -> None:
        """Look at what is made from now on, and at each backward."""
        self._unheld = self._count_of_unheld()
        parameter, autograd = self._torch.nn.Parameter, self._torch.autograd
        self._replace(parameter, "__new__", staticmethod(self._making(parameter.__new__)))
        self._replace(autograd, "backward", self._differentiating(autograd.backward))
        self._replace(autograd, "grad", self._differentiating(autograd.grad))

    def _replace(self, owner: Any, name: str, new: Any) -> None:
        before = vars(owner)[name]
        setattr(owner, name, new)

        def undo() -> None:
            if vars(owner)[name] is new:  # else another has put its own round ours
                setattr(owner, name, before)

        self._undo.append(undo)

    def end(self) -> None:
        """Look no more, and leave nothing of ours in torch."""
        self._round = ROUNDS + 1
        self._made.clear()
        while self._undo:
            self._undo.pop()()

    def _making(self, make: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(make)
        def made(kind: Any, *arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            one = make(kind, *arguments, **keywords)
            if self._round < ROUNDS and len(self._made) < MAX_MADE and one.requires_grad:
                with suppress(Exception):
                    data = arguments[0] if arguments else keywords.get("data")
                    if not getattr(data, "requires_grad", False):  # else a graph ends here, which is another fault
                        self._note(one, sys._getframe(1))  # noqa: SLF001 - who makes it
            return one

        return made

    def _note(self, parameter: Any, frame: FrameType) -> None:
        """Keep which line of the program makes a parameter, by itself or by what it constructs."""
        kind = type(parameter).__name__
        while frame.f_code.co_name == "__init__" and frame.f_back is not None:
            kind = type(frame.f_locals.get("self")).__name__
            frame = frame.f_back
        if not self._places.is_own(frame.f_code) or frame.f_code.co_name == "<module>":
            return
        place = frame.f_code, frame.f_lasti
        key = id(place[0]), place[1]
        if key not in self._lines and len(self._lines) < MAX_LINES:
            self._lines[key] = _Line(place, kind)
        if key in self._lines:
            self._made.append(_Made(weakref.ref(parameter), self._lines[key], _is_in_forward(frame)))

    def _differentiating(self, run: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(run)
        def differentiated(*arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            inputs = keywords.get("inputs", arguments[1] if run.__name__ == "grad" and len(arguments) > 1 else None)
            free = self._freed(inputs) if self._made else []
            try:
                result = run(*arguments, **keywords)
            except Exception as error:
                leave_no_frame(error)
                raise
            for one, parameter in free:
                one.trains |= _trains(parameter)
            return result

        return differentiated

    def _freed(self, inputs: Any) -> list[tuple[_Made, Any]]:
        """What only the graph holds; the rest is marked as held, or as meant where it is asked for by name."""
        asked = {id(one) for one in (inputs if isinstance(inputs, (list, tuple)) else [inputs])}
        free = []
        for one in self._made:
            if id(one.parameter()) in asked and one.parameter() is not None:
                one.line.is_meant = True
            one.is_held |= _count(one.parameter) > self._unheld
        for one in self._made:
            parameter = one.parameter()
            if parameter is not None and not one.is_held:
                free.append((one, parameter))
        return free

    def _saw_owner(self, optimizer: Any) -> None:
        """What an optimizer steps is meant."""
        owned = {id(one) for group in optimizer.param_groups for one in group["params"]} if self._made else set()
        for one in self._made:
            if id(one.parameter()) in owned and one.parameter() is not None:
                one.line.is_meant = True

    def _judge(self) -> None:
        """Count the step for each line that has made what trains for nobody."""
        kept = [one for one in self._made if one.is_held and one.in_forward and self._is_put_in(one.parameter())]
        for one in (*kept, *(one for one in self._made if one.trains and not one.is_held)):
            one.line.rounds.add(self._round)
        self._made.clear()

    def _is_put_in(self, parameter: Any) -> bool:
        """Whether a parameter with a gradient is part of a model, and no copy of another one there, as fast weights begin."""
        if parameter is None or not _trains(parameter):
            return False
        held = [one for root in outermost() for one in root.parameters()]
        others = [one for one in held if one is not parameter and one.shape == parameter.shape]
        return any(one is parameter for one in held) and not any(bool((one == parameter).all()) for one in others)

    def _count_of_unheld(self) -> int:
        """How many references this interpreter counts of a parameter that only a graph holds."""
        with self._torch.enable_grad():
            parameter = self._torch.nn.Parameter(self._torch.zeros(1))
            graph = parameter * 1.0
        reference = weakref.ref(parameter)
        del parameter
        return _count(reference) if graph.requires_grad else 0


def _count(reference: Callable[[], Any]) -> int:
    one = reference()
    return 0 if one is None else sys.getrefcount(one)


def _trains(parameter: Any) -> bool:
    gradient = parameter.grad
    return gradient is not None and (gradient.is_sparse or bool((gradient != 0).any()))


def _is_in_forward(frame: FrameType) -> bool:
    """Whether a module's call is among the frames above."""
    here: FrameType | None = frame
    for _ in range(MAX_DEPTH):
        if here is None:
            return False
        if here.f_code.co_name == "_call_impl":
            return True
        here = here.f_back
    return False
