"""The tracer: a function mode that sees each call of torch; what it says at a failure stands in `account`.

A TorchFunctionMode rather than a TorchDispatchMode: it sees what the program wrote (`.data`, `.item()`, `+=`), costs less,
and leaves autograd's own checks as they are. No saved-tensor hooks: a pair of them switches the version check off.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from torch.overrides import TorchFunctionMode

from ..saved import node_of  # noqa: TID252 - `live` is loaded under a name of its own
from ..storage import storage_of  # noqa: TID252 - `live` is loaded under a name of its own
from .account import MAX_TOLD, Account, operation_told
from .calls import ASK, SHAPED_LIKE
from .cleared import Cleared
from .combined import PAIRED, Combined
from .counted import Counted
from .crossed import Crossed
from .data_terms import DataTerms
from .dead_terms import GIVEN, DeadTerms
from .departures import Departures
from .drawn import Drawn
from .early import Early
from .exits import WAYS_IN, WAYS_OUT, Exits
from .expanded import Expanded
from .finite import Finite, has_finite_sum
from .flow import Flow, Operation
from .graph import Graphs
from .growth import Growth
from .indices import is_refused, names_index, on_cpu, would_assert
from .joined import Joined
from .lent import LENDING, Lent
from .lost_leaf import LostLeaves
from .nested import MAX_LISTED, nested
from .new_leaf import NewLeaves
from .place import Place, Places
from .recurrence import Recurrence
from .replay import Replays
from .sampled_terms import SampledTerms
from .saved_constants import SavedConstants
from .scalars import Scalars
from .shared import SHARING, Shared
from .silenced import Silenced
from .starved import FLAT, SET_DATA, Starved
from .statistics import Statistics
from .told import told_of
from .write import Write, Writes, extent

MAX_NUMBERS = 256
MAX_LOSSES = 64
_ACCESS = frozenset(("__get__", "__set__"))
_VIEWED = frozenset(("T", "mT", "H", "mH", "real", "imag"))  # attributes that are operations
_FROM_LISTS = frozenset(("tensor", "as_tensor"))
# Calls that compute nothing: a backward, and what only sets a flag of a leaf.
_NOT_COMPUTED = frozenset(("backward", "requires_grad_", "retain_grad"))
_TO_SHAPE_OF = frozenset(("expand_as", "view_as", "reshape_as"))  # which read the shape of their second tensor
_Before = tuple[list[Any], list[int], int, bool]
"""The tensors of a call, their versions, autograd's counter, and whether one of them required grad."""


class Tracer(TorchFunctionMode):  # type: ignore[misc]
    """Watches the calls of torch of every thread that it is entered in."""

    def __init__(self, torch: Any, *, finite: bool = True) -> None:
        super().__init__()
        self._torch = torch
        self._tensor, self._parameter = torch.Tensor, torch.nn.Parameter
        self._local = threading.local()
        self._places = Places(torch)
        self._writes = Writes()
        self._sequence: Callable[[], int] = torch.autograd._get_sequence_nr  # noqa: SLF001
        is_enabled, is_inference = torch.is_grad_enabled, torch.is_inference_mode_enabled
        # `enable_grad` inside inference mode switches the flag on, and no graph is recorded all the same.
        self._grad_mode: Callable[[], bool] = lambda: is_enabled() and not is_inference()
        self.flow = Flow()
        self._exits = Exits()
        self.replays = Replays(torch, self._places.here, self._writes, values=finite)
        self.graphs = Graphs(self._writes, self.replays)
        self.scalars = Scalars(self.flow)
        self.starved = Starved(self.flow, self.scalars)
        self.new_leaves = NewLeaves(torch, self.starved, self._places, self._local)
        self._numbers: deque[tuple[float, int]] = deque(maxlen=MAX_NUMBERS)
        self.statistics = Statistics(self._places, self.flow)
        self.account = Account(self.flow, self.graphs, self._writes, self._numbers, self.statistics)
        self.finite = Finite(torch, self.flow) if finite else None
        self.silenced = Silenced(self._places.here)
        self.hidden: list[dict[str, Any]] = []
        self.crossed = Crossed(self.flow)
        self.combined = Combined(self.flow, self.crossed)
        self.drawn = Drawn()
        self.sampled_terms = SampledTerms(torch, self.flow, self.drawn)
        self.dead_terms = DeadTerms(self.flow)
        self.data_terms = DataTerms(torch, self.flow, self.starved)
        self.recurrence = Recurrence(self.flow)
        self.departures = Departures(self.flow)
        self.cleared = Cleared()
        self.counted = Counted()
        self._shared = Shared()
        self.lent = Lent(self.flow)
        self.expanded = Expanded()
        self.saved_constants = SavedConstants(torch, self.flow, self._places)
        self.early = Early(self.flow)
        self.joined = Joined(torch, self.flow)
        self.lost_leaves = LostLeaves(torch, self.flow, self._places)
        self._told_places: list[Place | None] = []
        self.first_bad: dict[str, Any] | None = None
        self.has_optimizer = False
        self._losses: deque[Any] = deque(maxlen=MAX_LOSSES)
        self.growth = Growth(torch)
        self.refused: tuple[str, list[int | None], Callable[[Any], bool] | None] = "", [], None
        self.fault: str | None = None
        self.on_error: Callable[[Exception], None] | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Let the call happen, and log it."""
        __tracebackhide__ = True
        keywords = kwargs or {}
        name = getattr(func, "__name__", "")
        local = self._local
        if name in _ACCESS:
            name = self._accessed(name, func.__self__.__name__, args)
        elif name == "requires_grad_":
            self._see_flag(args, keywords)
        if name in ASK or getattr(local, "depth", None):
            if name == "_set_grad_enabled" and args and isinstance(args[0], bool):
                self._switch(args[0])
            return func(*args, **keywords)
        before = self._look(name, args, keywords)
        local.depth = 1
        try:
            result = (on_cpu(func) if would_assert(self._torch, name, args, keywords) else func)(*args, **keywords)
        except Exception as error:
            if before is not None and (isinstance(error, IndexError) or names_index(str(error))):
                makers = [self.flow.maker(one) for one in before[0] if not one.is_floating_point()]
                self.refused = name, makers, is_refused(name, args, keywords)
            if self.on_error is not None:
                self.on_error(error)
            raise
        finally:
            local.depth = 0
        if before is not None:
            self._note(name, result, before)
            if name == "__setitem__":
                self._see_part(args[0], args[1])
            elif name == "batch_norm":
                self._see_statistics(args, keywords)
            elif name in GIVEN:
                with self._torch._C.DisableTorchFunction():  # noqa: SLF001
                    self.dead_terms.given(name, args)
        return result

    def _see_part(self, tensor: Any, index: Any) -> None:
        """A part of a tensor was written, by the program itself or by a library that knows what it does."""
        try:
            place = self._places.here(3)
            if place is not None and place[0] is sys._getframe(2).f_code:  # noqa: SLF001
                with self._torch._C.DisableTorchFunction():  # noqa: SLF001
                    self.expanded.saw_write(tensor, index, self.flow.maker(tensor), place)
        except Exception as fault:  # noqa: BLE001 - the program must run whatever we cannot read of it
            self.fault = f"__setitem__: {type(fault).__name__}: {fault}"[:200]

    def _see_statistics(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """A batch norm in training mode moves its running statistics, whose version does not tell of it."""
        try:
            with self._torch._C.DisableTorchFunction():  # noqa: SLF001
                moved, place = self.statistics.moved(args, keywords, 3)
                if moved:
                    self._log_writes(moved, "batch_norm", place, self._sequence(), len(self.flow) - 1)
        except Exception as fault:  # noqa: BLE001 - the program must run whatever we cannot read of it
            self.fault = f"batch_norm: {type(fault).__name__}: {fault}"[:200]

    def _note(self, name: str, result: Any, before: _Before) -> None:
        """Log a call; never in its way."""
        try:
            self._log(name, result, before)
        except Exception as fault:  # noqa: BLE001 - the program must run whatever we cannot read of it
            self.fault = f"{name}: {type(fault).__name__}: {fault}"[:200]

    def _accessed(self, name: str, attribute: str, args: tuple[Any, ...]) -> str:
        """The name of an access to an attribute: of `.data` and `.T`, which are operations, and of a flag, which is noted."""
        if attribute == "grad" and not self._places.is_torchs(3):
            self.cleared.saw_read()
            if name == "__get__":
                self.lost_leaves.saw_read(args[0], 3)
        if attribute == "grad" and name != "__get__":
            self.counted.forget()
        if attribute == "requires_grad" and name == "__set__":
            self._see_flag(args, {})
        if attribute in _VIEWED and name == "__get__":
            return attribute
        if attribute != "data":
            return name
        # The value stands second; torch passes it by place.
        return "data" if name == "__get__" else SET_DATA if getattr(args[1], "requires_grad", False) else name

    def _see_flag(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """A flag is about to be set: noted where it is set to True."""
        if all(one is True for one in (*args[1:], *keywords.values())):
            with self._torch._C.DisableTorchFunction():  # noqa: SLF001
                self.early.saw_flag(args[0])

    def _switch(self, is_on: bool) -> None:  # noqa: FBT001 - torch passes it by place
        """Grad mode is about to be switched: where the program switched it off is remembered until it is on again."""
        if is_on or not self._grad_mode():
            if is_on:
                self._local.off, self._local.draws, self._local.has_path = None, False, False
            return
        distribution = self._places.distribution(3)
        self._local.draws = distribution is not None
        self._local.has_path = bool(getattr(distribution, "has_rsample", False))
        self._local.off = None if self._local.draws else self._places.switch(3)

    def _look(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> _Before | None:
        """The tensors that a call is given, and what it may change of them."""
        if name in _NOT_COMPUTED:
            return None
        if name in SHAPED_LIKE:
            return [], [], self._sequence(), False
        if name == "__getitem__":
            self.combined.saw_index(args[1])
        tensors = []
        kind = self._tensor
        for one in (*args, *keywords.values()):
            if isinstance(one, kind):
                tensors.append(one)
            elif type(one) is float:
                self.scalars.saw_taken(one, len(self.flow))
            elif type(one) in (list, tuple):
                found = nested(one) if name in _FROM_LISTS else one[:MAX_LISTED]
                tensors.extend(inner for inner in found if isinstance(inner, kind))
        if name in _TO_SHAPE_OF:
            del tensors[1:]
        try:
            versions = [one._version for one in tensors]  # noqa: SLF001 - autograd's own counter
        except RuntimeError:  # tensors of inference mode have none
            versions = []
        return tensors, versions, self._sequence(), any(one.requires_grad for one in tensors)

    def _log(self, name: str, result: Any, before: _Before) -> None:
        tensors, versions, sequence, took = before
        place = self._places.here(4)
        flow = self.flow
        outputs = self._outputs(name, result, tensors)
        inputs, leaves = flow.sort(tensors)
        is_entry = not tensors and name in WAYS_IN
        if is_entry:
            inputs = (*self._linked(result), *self._exits.came_back(self._places.stack(4)))
        grad_mode = self._grad_mode() or getattr(self._local, "draws", False)
        written = [one for one, version in zip(tensors, versions, strict=False) if one._version != version]  # noqa: SLF001
        if not written and name != SET_DATA:  # nearly all calls
            # `to` may give back what it was given, which it did not make.
            made = computed = outputs[1:] if outputs and tensors and outputs[0] is tensors[0] else outputs
            is_end = False
            gave = any(one.requires_grad for one in outputs)
        else:
            made, computed, is_end, gave = self._sorted(name, tensors, outputs, written, grad_mode=grad_mode)
        operation = Operation(
            name,
            place,
            inputs,
            leaves,
            took,
            gave,
            grad_mode or is_end,
            self.replays.is_again,
            bool(self.replays.open),
            sequence=sequence,
            wrote=tuple(number for one in written if (number := flow.maker(one)) is not None),
            fills=any(self._is_weight(one) for one in written),
            is_number=took and not gave and bool(outputs) and outputs[0].dim() == 0,
        )
        if took and (not operation.grad_mode or self.lent.holds(inputs)):
            self._see_taken(operation, tensors)
        if self.finite is not None and made and (node := node_of(made[0])) is not None:
            operation.node = node.name()
        number = flow.add(operation, made if is_end else computed)
        self._follow_draws(number, operation)
        self.data_terms.saw(number, outputs)
        if name in PAIRED or self.combined.followed:
            self.combined.saw(tensors, outputs, number, operation)
        if written:
            self._log_writes(written, name, place, sequence, number)
        if self.replays.open:
            self.replays.saw(name, outputs, place, number, tensors)
        if name in WAYS_OUT:
            self._let_out(number, operation, tensors, result)
        elif not is_entry:
            self._exits.saw(name)
        if self.finite is not None and name != "grad":  # whose backward is looked at by itself
            self.finite.saw_operands(name, number, tensors)
            for output in made:
                self.finite.watch(name, number, output, inputs)

    def _let_out(self, number: int, operation: Operation, tensors: list[Any], value: Any) -> None:
        """An operation let a value out of torch: a number, a list, or an array, which may have a tensor's memory."""
        stack = self._places.stack(5)
        self._exits.left(number, stack)
        self.dead_terms.left(number, stack, value)
        self._keep_number(value, number)
        self.scalars.saw_read(value, number, stack)
        if operation.name in LENDING and operation.inputs:
            self.lent.lend(tensors[0], operation)

    def _see_taken(self, operation: Operation, tensors: list[Any]) -> None:
        """An operation took what a graph computed with grad mode off, or after an array with its memory was let out.

        Grad mode by the program's own switch, which is no first pass of a reentrant segment.
        """
        self.lent.saw_read(tensors, operation)
        off = None if operation.grad_mode else getattr(self._local, "off", None)
        operation.off = off
        switched = off is not None and all(off != one.place for one in self.replays.open)
        if switched or not any(one.is_off for one in self.replays.open):
            operation.in_segment = False

    def _is_weight(self, tensor: Any) -> bool:
        if tensor._is_view():  # noqa: SLF001 - `weight[padding].fill_(0)`: whether that is a leaf torch may refuse to say
            return False
        return bool(tensor.is_leaf) and (bool(tensor.requires_grad) or isinstance(tensor, self._parameter))

    def _sorted(
        self, name: str, tensors: list[Any], outputs: list[Any], written: list[Any], *, grad_mode: bool
    ) -> tuple[list[Any], list[Any], bool, bool]:
        """Of a call that wrote: all that it made, what of that it computed, whether a graph ends there, whether it gave one."""
        # What an initialiser or a loader writes into a leaf is its value, not a way that its gradients would go.
        leaves_set = [one for one in written if self._is_weight(one)]
        leaves_set += outputs if name == SET_DATA else ()
        made = [*outputs, *(one for one in written if all(one is not other for other in outputs))]
        computed = [one for one in made if all(one is not other for other in leaves_set)] if leaves_set else made
        # `x[i] = y` returns nothing: what it gives a graph is what it wrote.
        gave = any(one.requires_grad for one in computed if grad_mode or all(one is not other for other in written))
        # A leaf that takes what another network computes is where that one's graph ends, with grad mode off as it has to be.
        is_end = bool(leaves_set) and any(
            one.requires_grad and all(one is not other for other in made) for one in tensors
        )
        # What is written through a view gives its base the graph: `rays[index]` of each later step has it.
        bases = [one._base for one in written if one._base is not None and not self._is_weight(one)]  # noqa: SLF001
        return made, [*computed, *(one for one in bases if one.requires_grad)], is_end, gave

    def _outputs(self, name: str, result: Any, tensors: list[Any]) -> list[Any]:
        """The tensors that a call gives; of `p.data = x` the one that takes it."""
        if name == SET_DATA:
            return tensors[:1]
        if isinstance(result, self._tensor):
            # An empty one gets its memory by `set_`, which is not seen, as each batch of a worker: it comes from elsewhere.
            return [result] if name != "empty" or result.numel() else []
        return [one for one in result if isinstance(one, self._tensor)] if isinstance(result, (list, tuple)) else []

    def _follow_draws(self, number: int, operation: Operation) -> None:
        if operation.took_grad and operation.name in FLAT:
            self.starved.has_flat = True
        if operation.took_grad and getattr(self._local, "has_path", False):
            self.drawn.begin(number, operation)
        elif self.drawn.is_followed(operation.inputs):
            self.drawn.follow(number, operation, is_scored=self._places.distribution(5) is not None)

    def _log_writes(self, written: list[Any], name: str, place: Place | None, sequence: int, number: int) -> None:
        if name == "zero_":
            self.counted.forget()
        thread, grad_mode = threading.get_ident(), self._grad_mode()
        for one in written:
            storage = storage_of(one)
            if storage is not None:
                start, end = extent(one)
                self._writes.add(
                    Write(
                        name,
                        place,
                        thread,
                        sequence,
                        storage,
                        start,
                        end,
                        one._version,  # noqa: SLF001
                        tuple(one.shape),
                        grad_mode,
                        number,
                    )
                )

    def _keep_number(self, value: Any, number: int) -> None:
        """Remember a Python number that was read from a tensor: a tensor made of it later came from there."""
        if isinstance(value, float):
            self._numbers.append((value, number))

    def _linked(self, tensor: Any) -> tuple[int, ...]:
        """Where the values of a tensor that was made of Python numbers were read from."""
        if not isinstance(tensor, self._tensor) or not self._numbers or not 0 < tensor.numel() <= MAX_NUMBERS:
            return ()
        values = set(tensor.detach().flatten().tolist())
        return tuple({number for value, number in self._numbers if value in values})

    def watched(self, make: Callable[..., Any]) -> Callable[..., Any]:
        """A function that makes a tensor of an array, and tells this tracer of it."""

        @functools.wraps(make)
        def made(*arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            result = make(*arguments, **keywords)
            if not getattr(self._local, "depth", 0):
                with self._torch._C.DisableTorchFunction():  # noqa: SLF001
                    self._note(make.__name__, result, ([], [], self._sequence(), False))
                    self._shared.add(result, self._places.here(2), len(self.flow))
            return result

        return made

    def sharing(self, make: Callable[..., Any]) -> Callable[..., Any]:
        """A function that may make a tensor with the memory of an array, and tells this tracer where it did."""

        @functools.wraps(make)
        def made(*arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            result = make(*arguments, **keywords)
            data = arguments[0] if arguments else keywords.get("data", keywords.get("obj"))
            place = getattr(getattr(data, "ctypes", None), "data", None)
            if place is not None and not getattr(self._local, "depth", 0):
                with self._torch._C.DisableTorchFunction():  # noqa: SLF001
                    if not result.is_cuda and result.data_ptr() == place:
                        self._shared.add(result, self._places.here(2), len(self.flow))
            return result

        return made

    @contextmanager
    def inside(self) -> Iterator[None]:
        """See what torch calls the program back for, while it is inside a call that this mode let happen."""
        depth = getattr(self._local, "depth", 0)
        if not depth:
            yield
            return
        self._local.depth = 0
        try:
            with self:
                yield
        finally:
            self._local.depth = depth

    def clearing(self, clear: Callable[..., Any], saw: Callable[[Any, Place | None], None]) -> Callable[..., Any]:
        """A `zero_grad`, of an optimizer or a module, that tells this tracer what it is about to clear."""

        @functools.wraps(clear)
        def cleared(this: Any, *arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            with self._torch._C.DisableTorchFunction():  # noqa: SLF001
                saw(this, self._places.here(2))
                self.joined.saw_clear(this)
                self.counted.forget()
            return clear(this, *arguments, **keywords)

        return cleared

    def before_step(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        """Judge the gradients of the step; and see nothing of what it does itself, unless it calls the program back."""
        has_closure = any(callable(one) for one in (*arguments[1:], *keywords.values()))
        with self._torch._C.DisableTorchFunction():  # noqa: SLF001
            self.starved.saw_step(optimizer)
            self.sampled_terms.saw_step(optimizer)
            self.joined.saw_step(optimizer)
            self.cleared.saw_step(optimizer, has_closure=has_closure)
            self.counted.forget()
            self.replays.compare()
        if self.finite is not None and self.first_bad is None:
            owned = [one for group in optimizer.param_groups for one in group["params"] if one.grad is not None]
            with self._torch._C.DisableTorchFunction():  # noqa: SLF001
                self.finite.saw_step(optimizer)
                bad = [one for one in owned if not one.grad.is_sparse and not has_finite_sum(self._torch, one.grad)]
                is_infinite = any(bool(one.isinf()) for one in self._losses)
                is_bad = bool(bad) or is_infinite or any(bool(one.isnan()) for one in self._losses)
            self._losses.clear()
            with self._torch._C.DisableTorchFunction():  # noqa: SLF001 - what is computed to look is not the program's
                if is_bad:
                    self.look_at_values(bad, ends_infinite=is_infinite)
                elif (
                    not has_closure or self.finite.may_have_stepped
                ):  # the first closure is yet to read what was made of data
                    self.forget()
        if not has_closure:
            self._local.depth = 1
        elif self.finite is not None:
            self.finite.may_have_stepped = True  # LBFGS asks for the loss again between the moves of one step

    def begins(self) -> None:
        """The program begins with this: no step was made that the tracer has not seen."""
        if self.finite is not None:
            self.finite.may_have_stepped = False

    def after_step(self, optimizer: Any) -> None:
        """The step wrote its parameters: one write each, on the line that called it; with a closure each was seen by itself."""
        if self.finite is not None:
            self.finite.may_have_stepped = True
        self._shared.forget()
        self.lent.forget()
        self._exits.saw("step")
        if not getattr(self._local, "depth", 0):
            return
        self._local.depth = 0
        place = self._places.here(3)
        written = [one for group in optimizer.param_groups for one in group["params"] if one.grad is not None]
        number = self.flow.add(Operation("step", place, (), ()), ())
        self._log_writes(written, "step", place, self._sequence(), number)

    def forget(self) -> None:
        """What was noted of values belongs to a step that was in order, or that GradScaler left out."""
        if self.finite is not None:
            self.finite.forget()
        self.flow.forget_leaves()

    def note_backward(self, roots: Any, arguments: tuple[Any, ...]) -> None:
        """A backward is about to go through the graph of some tensors; never in its way."""
        try:
            with self._torch._C.DisableTorchFunction():  # noqa: SLF001
                keeps, makes, inputs = (arguments[at] if len(arguments) > at else None for at in (1, 2, 3))
                self._before_engine(roots, inputs, keeps=bool(keeps))
                if not inputs:
                    self.counted.saw_backward(roots, self.graphs.passes[-1], makes_graph=bool(makes))
        except Exception as fault:  # noqa: BLE001 - the program must run whatever we cannot read of it
            self.fault = f"backward: {type(fault).__name__}: {fault}"[:200]

    def _before_engine(self, roots: Any, inputs: Any, *, keeps: bool) -> None:
        place = self._places.here(4)
        self._exits.saw("backward")
        self.early.saw_backward(roots, inputs)
        if self.finite is not None:
            sums = [one.detach().sum() for one in roots if hasattr(one, "detach") and not one.is_meta]
            self._losses.extend(sums)
            if not inputs and self.first_bad is None:  # no derivative that a loss is made of, nothing behind a NaN
                self.growth.saw(sums)
        if len(roots) == 1 and hasattr(roots[0], "numel"):
            self.dead_terms.saw_backward(roots[0])
            self.combined.saw_backward(roots[0])
            self.sampled_terms.saw_backward(roots[0])
            root = self.flow.maker(roots[0])
            self.recurrence.saw_backward(root)
            self.data_terms.saw_backward(root if roots[0].numel() == 1 else None)
            self.departures.saw_backward(root)
        for shared, name in ((self._shared, SHARING), (self.lent, LENDING[0])):
            for tensor, made, number in shared.changed():
                self._log_writes([tensor], name, made, self._sequence(), number)
        stack = self._places.stack(4)
        self.cleared.saw_backward(stack)
        root = self.flow.maker(roots[0]) if len(roots) == 1 else None
        operation = self.flow.get(root) if root is not None else None
        found = self.graphs.before_backward(
            roots,
            (place, stack, operation.place if operation is not None else None),
            keeps=keeps,
            at=len(self.flow),
            thread=threading.get_ident(),
        )
        for node, name, tensor, write in found:
            if len(self.hidden) < MAX_TOLD and all(write.place != other for other in self._told_places):
                self._told_places.append(write.place)
                self.hidden.append(self.account.hidden(node, name, tensor, write, place))

    def look_at_values(self, leaves: Iterable[Any] = (), *, ends_infinite: bool = False) -> None:
        """Read the flags of the step that ends here, and remember the first value that was not finite."""
        if self.finite is None or self.first_bad is not None:
            return
        found = self.finite.read(ends_infinite=ends_infinite)
        if found is None:
            for leaf in leaves:
                taker = self.finite.blame_leaf(leaf)
                if taker is not None:
                    found = {"direction": "backward", "kind": "nan", "number": taker[0], "operation": taker[1]}
                    break
        if found is not None:
            operation = found.pop("operation")
            self.first_bad = {**operation_told(operation), **found}
            self.first_bad["in_graph"] = operation.gave_grad or found["direction"] == "backward"
            for key in self.first_bad.keys() & {"then", "mask"}:
                self.first_bad[key] = operation_told(self.first_bad[key])
        self.flow.forget_leaves()

    def explain(
        self, loss: Any, message: str, moved: Iterable[tuple[Any, Any, str]] = (), frames: Iterable[FrameType] = ()
    ) -> dict[str, Any]:
        """What was seen that a failure may come from, by kind.

        `moved` are nodes with a saved tensor that was written, and its name there; `frames` the program's own that are running.
        """
        with self._torch._C.DisableTorchFunction():  # noqa: SLF001
            return told_of(self, loss, message, moved, frames)
