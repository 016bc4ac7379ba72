"""Losses that go backward without GradScaler's factor, beside others that have it: the step divides both by it.

The first of them trains nothing then. Told is a backward whose gradients were added to scaled ones of the same parameters, or
the other way round, with which the scaler's own step was made: not what came behind `unscale_`, was cleared in between, or has
the factor by other ways, as what is computed from gradients that the scaled loss has left in tensors of the program.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .frame import leave_no_frame
from .misscaled import DELIBERATE
from .trace.place import Place, Places, describe

LEAST = 2  # updates of the scaler in which it was so
MAX_UPDATES = 8
MAX_PARAMETERS = 2_000
MAX_NODES = 20_000
NEAR, NEAREST = 200, 20  # nodes of a graph from its root, among which the scaler's product is, or one by hand
MAX_MARKS = 256
SCALED, PLAIN, OTHER = "scaled", "plain", "other"


class Unscaled:
    """Looks at the backwards of the first updates of a scaler that is on; `made` gives the optimizers of the program."""

    def __init__(self, torch: Any, made: Callable[[], list[Any]]) -> None:
        self._torch, self._made = torch, made
        self._places = Places(torch)
        self._marks: dict[int, None] = {}
        self._scale = 1.0
        self._updates = 0
        self._is_inside = False
        self._is_watching = False
        self._is_unsure = False
        self._gradients: dict[int, _Gradient] = {}
        self._unscaled: set[int] = set()
        self._round: dict[Place | None, float] = {}
        self._found: dict[Place | None, list[float]] = {}

    def watch(self) -> None:
        """Look at what scalers do; at backwards once one of them is on."""
        scaler = getattr(self._torch.amp, "GradScaler", None)
        if scaler is not None:
            scaler.scale = self._scaling(scaler.scale)
            scaler.unscale_ = self._before(scaler.unscale_, self._judge)
            scaler.step = self._before(scaler.step, self._judge)
            scaler.update = self._before(scaler.update, self._end_round)

    def at_the_end(self) -> list[dict[str, Any]]:
        """The lines of the backwards, each with the factor that it lacks."""
        if self._is_unsure:
            return []
        told = [(place, factors) for place, factors in self._found.items() if len(factors) >= LEAST and place]
        return [{"kind": "unscaled", "factor": factors[0], **describe(place)} for place, factors in told]

    @property
    def _is_over(self) -> bool:
        return self._updates >= MAX_UPDATES or self._is_unsure

    def _scaling(self, scale: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(scale)
        def scaling(this: Any, outputs: Any) -> Any:
            __tracebackhide__ = True
            try:
                scaled = scale(this, outputs)
            except Exception as error:
                leave_no_frame(error)
                raise
            if not self._is_over:
                with self._aside():
                    self._mark(this, scaled)
            return scaled

        return scaling

    def _before(self, call: Callable[..., Any], look: Callable[..., None]) -> Callable[..., Any]:
        @functools.wraps(call)
        def calling(this: Any, *arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            if self._is_watching and not self._is_over:
                with self._aside():
                    look(this, *arguments)
            try:
                return call(this, *arguments, **keywords)
            except Exception as error:
                leave_no_frame(error)
                raise

        return calling

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """What is looked at is no part of the program, which must run also where torch is one that we do not know."""
        with suppress(Exception), self._torch._C.DisableTorchFunction():  # noqa: SLF001
            yield

    def _mark(self, scaler: Any, scaled: Any) -> None:
        """Remember the products of a scaler by their numbers in autograd's order."""
        if not scaler.is_enabled():
            return
        for one in [scaled] if isinstance(scaled, self._torch.Tensor) else scaled:
            if one.grad_fn is not None:
                self._marks[one.grad_fn._sequence_nr()] = None  # noqa: SLF001
        while len(self._marks) > MAX_MARKS:
            self._marks.pop(next(iter(self._marks)))
        if not self._is_watching:
            self._is_watching = True
            self._torch.autograd.backward = self._seeing(self._torch.autograd.backward)
        if not self._gradients:
            self._scale = float(scaler.get_scale())

    def _seeing(self, backward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(backward)
        def seen(*arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            # What a checkpoint differentiates inside of a backward is part of that.
            is_looked_at = not self._is_inside and not self._is_over
            before = None
            if is_looked_at:
                self._is_inside = True
                with self._aside():
                    before = self._look(arguments, keywords, self._places.here(2))
            try:
                result = backward(*arguments, **keywords)
            except Exception as error:
                leave_no_frame(error)
                raise
            finally:
                if is_looked_at:
                    self._is_inside = False
            if before is not None:
                with self._aside():
                    self._note(*before)
            return result

        return seen

    def _look(
        self, arguments: tuple[Any, ...], keywords: dict[str, Any], place: Place | None
    ) -> tuple[str, Place | None, list[tuple[Any, Any, int]]]:
        """What a backward starts from, and the gradients that are there before it."""
        kind = self._kind(arguments, keywords)
        owned = list(self._owned())
        met = [one for one in owned if self._has_other(one, kind)]
        if met and not any(bool(one.grad.any()) for one in met[:8]):
            self._gradients.clear()  # set to zero in between
        return kind, place, [(one, one.grad, -1 if one.grad is None else one.grad._version) for one in owned]  # noqa: SLF001

    def _kind(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str:
        roots = keywords.get("tensors", arguments[0] if arguments else ())
        roots = [roots] if isinstance(roots, self._torch.Tensor) else list(roots)
        given = keywords.get("grad_tensors", arguments[1] if len(arguments) > 1 else None)
        if given is not None or not roots:
            return OTHER  # a gradient that may be a scaled one
        kinds = {self._kind_of(one) for one in roots}
        return kinds.pop() if len(kinds) == 1 else OTHER

    def _kind_of(self, root: Any) -> str:
        """Whether a loss is, or is computed from, what the scaler has multiplied; or has a factor of that size by itself."""
        for node in _nodes(root, NEAR):
            if node._sequence_nr() in self._marks:  # noqa: SLF001
                # Where an earlier one was found: what that leaves in tensors of the program is scaled, and may be gone on from.
                if self._found and self._leaves_others(root):
                    self._is_unsure = True
                return SCALED
        is_scaled_by_hand = any(_factor(node) >= DELIBERATE * self._scale for node in _nodes(root, NEAREST))
        return OTHER if is_scaled_by_hand else PLAIN

    def _leaves_others(self, root: Any) -> bool:
        """Whether a backward leaves gradients in tensors that are no parameters; True where the graph is too large to know."""
        nodes = list(_nodes(root, MAX_NODES))
        leaves = [one.variable for one in nodes if hasattr(one, "variable")]
        return len(nodes) >= MAX_NODES or not all(isinstance(one, self._torch.nn.Parameter) for one in leaves)

    def _has_other(self, parameter: Any, kind: str) -> bool:
        """Whether a parameter has the gradient of a backward of another kind."""
        known = self._gradients.get(id(parameter))
        return known is not None and known.is_of(parameter) and bool(known.kinds.keys() - {kind})

    def _note(self, kind: str, place: Place | None, before: list[tuple[Any, Any, int]]) -> None:
        """A backward has been: what it gave gradients to."""
        for parameter, gradient, version in before:
            now = parameter.grad
            if now is None or id(parameter) in self._unscaled:
                continue
            if now is not gradient or now._version != version:  # noqa: SLF001
                known = self._gradients.get(id(parameter))
                if known is None or gradient is None or known.gradient() is not gradient:
                    known = self._gradients[id(parameter)] = _Gradient()
                known.gradient = weakref.ref(now)
                known.kinds.setdefault(kind, []).append(place)

    def _judge(self, scaler: Any, optimizer: Any) -> None:
        """The scaler is about to divide the gradients of an optimizer: are those of a plain loss among them?"""
        for parameter in (one for group in optimizer.param_groups for one in group["params"]):
            self._unscaled.add(id(parameter))
            known = self._gradients.pop(id(parameter), None)
            if known is not None and known.is_of(parameter) and known.kinds.keys() == {SCALED, PLAIN}:
                self._round.update(dict.fromkeys(known.kinds[PLAIN], float(scaler.get_scale())))

    def _end_round(self, *_: Any) -> None:
        for place, factor in self._round.items():
            if factor > 1.0:
                self._found.setdefault(place, []).append(factor)
        self._round, self._unscaled = {}, set()
        self._updates += 1

    def _owned(self) -> Iterator[Any]:
        """The parameters of the program's optimizers, as many as are looked at."""
        count = 0
        for optimizer in self._made():
            for one in (each for group in optimizer.param_groups for each in group["params"]):
                if count < MAX_PARAMETERS:
                    count += 1
                    yield one


class _Gradient:
    """A parameter's gradient, and the lines of the backwards whose sum it is, by their kind."""

    def __init__(self) -> None:
        self.gradient: Callable[[], Any] = lambda: None
        self.kinds: dict[str, list[Place | None]] = {}

    def is_of(self, parameter: Any) -> bool:
        return parameter.grad is not None and self.gradient() is parameter.grad


def _nodes(root: Any, most: int) -> Iterator[Any]:
    """The nodes of a graph, those nearest to its root first."""
    queue, seen = [root.grad_fn], {root.grad_fn}
    for count, node in enumerate(queue):
        if node is None or count >= most:
            return
        yield node
        new = [one for one, _ in node.next_functions if one is not None and one not in seen]
        seen.update(new)
        queue.extend(new)


def _factor(node: Any) -> float:
    """The number that a product multiplies by; 0 where there is none."""
    sizes = [0.0]
    for name in ("_saved_other", "_saved_self") if node.name().startswith("Mul") else ():
        with suppress(Exception):  # saved for a gradient only that is wanted
            one = getattr(node, name)
            sizes += [abs(float(one))] if one is not None and one.numel() == 1 else []
    return max(sizes)
