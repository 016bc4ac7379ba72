"""The first value that is not finite, forward or backward: one sum an operation, left on its device, read once a step."""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import Any

from ..saved import node_of  # noqa: TID252 - `live` is loaded under a name of its own
from .flow import Flow, Operation
from .infinite_data import InfiniteData, describe_data

MAX_FLAGS = 20_000
MAX_MOVES = 6  # between a file and the parameter that is loaded from it
# What holds anything until it is written.
EMPTY = frozenset(("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"))
UNINITIALISED = EMPTY | {"data", "detach"}
# What writes infinity on purpose: masks and initial maxima.
DELIBERATE = frozenset(
    ("masked_fill", "masked_fill_", "where", "full", "full_like", "fill_", "tensor", "new_full", "triu", "tril",
     "__setitem__", "zeros_like", "ones_like", "scaled_dot_product_attention", "constant_", "new_tensor", "expand")
)  # fmt: skip
# What makes NaN of 0 and infinity: probabilities of a mask times their own logarithms.
FACTORS = frozenset(
    ("mul", "mul_", "__mul__", "__rmul__", "__imul__", "matmul", "__matmul__", "einsum", "bmm", "addcmul")
)

# What only moves values: NaN that it gives was in what it took.
MOVES = frozenset(
    ("stack", "cat", "concat", "__getitem__", "select", "narrow", "index_select", "gather", "take", "view", "reshape", "flatten",
     "unflatten", "permute", "transpose", "movedim", "t", "unsqueeze", "squeeze", "expand", "repeat", "contiguous", "clone", "to",
     "float", "double", "half", "bfloat16", "cpu", "cuda", "chunk", "split", "unbind", "pin_memory", "tensor", "as_tensor",
     "from_numpy", "roll", "flip", "unfold", "vstack", "hstack", "type")
)  # fmt: skip

# What gives a view: its values are those of the tensor under it, which is watched already.
VIEWS = frozenset(
    ("view", "reshape", "flatten", "unflatten", "permute", "transpose", "movedim", "t", "unsqueeze", "squeeze", "expand", "select",
     "narrow", "chunk", "split", "unbind", "__getitem__", "view_as", "expand_as", "swapaxes", "T", "mT", "H", "mH")
)  # fmt: skip

# What is infinite at a pole, whatever the dtype.
UNBOUNDED = frozenset(
    (
        "log",
        "log2",
        "log10",
        "div",
        "__truediv__",
        "__rtruediv__",
        "__rdiv__",
        "reciprocal",
        "rsqrt",
        "tan",
        "atanh",
        "logit",
    )
)

# Whose derivative may be infinite or NaN where what they give is finite.
STEEP = frozenset(
    ("pow", "__pow__", "__rpow__", "float_power", "sqrt", "rsqrt", "div", "__truediv__", "__rtruediv__", "__rdiv__", "true_divide", "reciprocal",
     "log", "log2", "log10", "log1p", "xlogy", "norm", "vector_norm", "std", "var", "acos", "asin", "arccos", "arcsin", "atan2", "acosh",
     "atanh", "cdist", "pairwise_distance", "normalize", "cosine_similarity", "exp", "prod", "cumprod", "svd", "eigh", "eig", "qr",
     "inverse", "solve", "cholesky", "logit", "dist")
)  # fmt: skip
MAX_ROWS = 3
SECOND_MOMENTS = frozenset(("exp_avg_sq", "max_exp_avg_sq", "square_avg", "sum"))
QUOTIENTS = frozenset(("div", "div_", "__truediv__", "true_divide"))
CLASS_LOSSES = frozenset(("cross_entropy", "nll_loss", "nll_loss_nd", "nll_loss2d"))


def broken_rows(tensor: Any) -> dict[str, list[int]]:
    """The first rows that are not finite, how many of them there are, and of how many; nothing where all are so."""
    if hasattr(tensor, "to_local") or tensor.ndim < 2:
        return {}
    broken = ~tensor.detach().isfinite().flatten(1).all(1)
    count, whole = int(broken.sum()), len(broken)
    return {"rows": broken.nonzero().flatten()[:MAX_ROWS].tolist(), "broken": [count, whole]} if count < whole else {}


def is_damaged(state: dict[Any, Any]) -> bool:
    """Whether what an optimizer keeps of a parameter is not finite, or a second moment, of which it takes the root, below 0."""
    for name, value in state.items():
        if not hasattr(value, "is_floating_point") or not value.is_floating_point() or hasattr(value, "to_local"):
            continue
        if value.is_meta or value.is_sparse or not value.numel():
            continue
        if not bool(value.isfinite().all()) or (name in SECOND_MOMENTS and bool((value < 0).any())):
            return True
    return False


class Finite:
    """Sums of outputs and of gradients since they were last read, by the number of the operation."""

    def __init__(self, torch: Any, flow: Flow) -> None:
        self._torch = torch
        self._flow = flow
        self._below = torch._C._AutoDispatchBelowAutograd  # noqa: SLF001 - a sum that leaves no node behind
        self._functorch = torch._C._functorch  # noqa: SLF001 - its tensors must not outlive a transform
        self._outside = torch._C._DisableFuncTorch  # noqa: SLF001
        self._flags: deque[tuple[bool, int, Any]] = deque(maxlen=MAX_FLAGS)
        self._narrow: set[int] = set()  # what float16 holds ends at 65504
        self._seen: set[int] = set()  # watched in this step, by themselves or by what they are views of
        self._views: set[int] = set()
        self._by_count: set[int] = set()  # quotients by whole numbers
        self._divisors: dict[int, Any] = {}  # the lowest divisor of quotients of data, which nothing differentiates
        self._partial: set[int] = set()  # views of memory that may be filled in part only, and writes into parts of it
        self._given: dict[
            int, list[Any]
        ] = {}  # the parameters that an operation took, also those that were loaded in sight
        self._types = (torch.Tensor, torch.nn.Parameter)
        self._infinite_data = InfiniteData(flow, self._types, MOVES, DELIBERATE)
        self.may_have_stepped = True  # whether an optimizer may have made the parameters what they are
        self._begun: dict[int, bool] = {}  # whether a parameter was finite before its first step
        self._moved_by_damage: set[int] = set()  # those whose optimizer began with a state that no steps leave

    def watch(self, name: str, number: int, output: Any, inputs: tuple[int, ...]) -> None:
        """Note the sum of an output, and of its gradient once that is there; a view of what is watched needs none of its own."""
        if name in UNINITIALISED:
            return
        if self._is_partial(name, inputs):
            self._partial.add(number)
            return
        if name in VIEWS and len(inputs) == 1 and inputs[0] in self._seen and output._is_view():  # noqa: SLF001
            self._seen.add(number)
            self._views.add(number)
            return
        is_inside = self._functorch.peek_interpreter_stack() is not None
        if not self._is_plain(output := self._under(output) if is_inside else output, is_inside=is_inside):
            return
        with self._outside() if is_inside else nullcontext():
            self._note(number, output, is_gradient=False)
        self._seen.add(number)
        if output.dtype is self._torch.float16:
            self._narrow.add(number)
        if not is_inside and output.requires_grad and node_of(output) is not None:
            output.register_hook(functools.partial(self._take, number))

    def _is_partial(self, name: str, inputs: tuple[int, ...]) -> bool:
        """Whether an operation gives a view of memory that nothing may have filled yet, or that memory with a part of it written."""
        if not inputs or (name != "__setitem__" and name not in VIEWS):
            return False
        if len(self._partial) > MAX_FLAGS:
            self._partial.clear()
        maker = self._flow.get(inputs[0])
        return inputs[0] in self._partial or (maker is not None and maker.name in EMPTY)

    def saw_operands(self, name: str, number: int, tensors: list[Any]) -> None:
        """Note the parameters that an operation takes, and the divisors of data: what is counted is 0 or 1 at least."""
        if own := [one for one in tensors if type(one) is self._types[1]]:
            self._given[number] = own
        if name not in QUOTIENTS or len(tensors) != 2:
            return
        of, by = tensors
        if not by.is_floating_point():
            self._by_count.add(number)
        elif not of.requires_grad and not by.requires_grad and self._is_plain(by):
            with self._torch._C.DisableTorchFunction(), self._below():  # noqa: SLF001
                self._divisors[number] = by.min()

    def _under(self, tensor: Any) -> Any:
        """The plain tensor with the values of one that transforms of torch.func wrap: it outlives them."""
        while self._functorch.is_functorch_wrapped_tensor(tensor):
            tensor = self._functorch.get_unwrapped(tensor)
        return tensor

    def _is_plain(self, tensor: Any, *, is_inside: bool = False) -> bool:
        """Whether a tensor is one whose floating-point values can be read as they are, here and now; `is_inside` of one from under a transform."""
        if type(tensor) not in self._types or tensor.is_meta or not tensor.is_floating_point():
            return False
        if not is_inside and self._functorch.peek_interpreter_stack() is not None:
            return False
        if tensor.layout is not self._torch.strided or not tensor.numel():
            return False
        return not (tensor.is_cuda and self._torch.cuda.is_current_stream_capturing())

    def _take(self, number: int, gradient: Any) -> None:
        if gradient is not None and type(gradient) in self._types and gradient.layout is self._torch.strided:
            self._note(number, gradient, is_gradient=True)

    def _note(self, number: int, tensor: Any, *, is_gradient: bool) -> None:
        with self._torch._C.DisableTorchFunction(), self._below():  # noqa: SLF001
            half = tensor.element_size() < 4
            total = tensor.sum(dtype=self._torch.float32) if half else tensor.sum()
        self._flags.append((is_gradient, number, total))

    def forget(self) -> None:
        """Drop what was noted: the step that ends here was in order."""
        self._flags.clear()
        self._narrow, self._seen, self._views, self._by_count = set(), set(), set(), set()
        self._given, self._divisors = {}, {}

    def ends_infinite(self) -> bool:
        """Whether the last value that a graph gave since the last reading, the loss of a step that was not made, is an infinity."""
        for is_gradient, number, total in reversed(self._flags):
            operation = self._flow.get(number)
            if not is_gradient and operation is not None and operation.gave_grad:
                return math.isinf(float(total))
        return False

    def read(self, *, ends_infinite: bool = False) -> dict[str, Any] | None:
        """What first was not finite since the last reading; None where all was. The only moment that waits for the device.

        An infinity that makes no NaN may be meant, as that of a mask is; where the loss itself `ends_infinite`, its source is told.
        """
        flags, narrow, views, by_count = list(self._flags), self._narrow, self._views, self._by_count
        divisors = self._divisors
        given, since = self._given, min((number for _, number, _ in flags), default=0)
        self.forget()
        bad = list(self._bad(flags))
        forward = {number: kind for is_gradient, number, kind in bad if not is_gradient}
        gradient = {number: kind for is_gradient, number, kind in bad if is_gradient}
        # Clipping and logging compute with gradients that are bad already: what came first in time counts.
        first = next(((is_gradient, kind) for is_gradient, _, kind in bad if is_gradient or kind == "nan"), None)
        if first is not None and first[0]:
            forward = self._behind_infinite_loss(flags, next(iter(gradient)), forward)
            ends_infinite = bool(forward)
            if not ends_infinite or self._first_infinity(forward, views) is None:
                own = flags[: _end_of_backward(flags, next(iter(gradient)))]
                gradient = {number: kind for is_gradient, number, kind in self._bad(own) if is_gradient}
                return self._first_backward(gradient, {number for is_gradient, number, _ in own if is_gradient}, views)
        found = self._first_forward(forward, views, given, since=since)
        if found is None and ends_infinite and forward:
            found = self._first_infinity(forward, views)
            found = (
                {**found, **self._as_made(found["number"], found["operation"], given, since)}
                if found is not None
                else None
            )
        if found is not None and found["kind"] == "inf" and found["number"] in narrow:
            found["narrow"] = found["operation"].name not in UNBOUNDED
        if found is not None and found["number"] in by_count:
            found["by_count"] = True
        if found is not None and found["number"] in divisors and float(divisors[found["number"]]) >= 0:
            found["by_none_negative"] = True
        if found is not None and found["kind"] == "nan" and found["direction"] == "forward":
            found["of_labels"] = self._is_of_labels(found["operation"])
        return found

    def _behind_infinite_loss(
        self, flags: list[tuple[bool, int, Any]], bad: int, forward: dict[int, str]
    ) -> dict[int, str]:
        """The bad values up to the one that was sent backward, the last before the first bad gradient; none unless it was an infinity."""
        at = next(index for index, (is_gradient, number, _) in enumerate(flags) if is_gradient and number == bad)
        for is_gradient, number, _ in reversed(flags[:at]):
            operation = self._flow.get(number)
            if not is_gradient and operation is not None and operation.gave_grad:
                is_infinite = forward.get(number) == "inf"
                return {one: kind for one, kind in forward.items() if one <= number} if is_infinite else {}
        return {}

    def _is_of_labels(self, operation: Operation) -> bool:
        """Whether an operation divides what a loss over labels has summed: NaN of a finite sum is 0 / 0, and no label has counted."""
        number = operation.inputs[0] if operation.name in QUOTIENTS and operation.inputs else None
        for _ in range(MAX_MOVES):
            maker = self._flow.get(number) if number is not None else None
            if maker is None or maker.name in CLASS_LOSSES:
                return maker is not None
            number = maker.inputs[0] if maker.name in MOVES and len(maker.inputs) == 1 else None
        return False

    def _bad(self, flags: list[tuple[bool, int, Any]]) -> Iterator[tuple[bool, int, str]]:
        """The flags whose sum is not finite, in the order of time, with `nan` or `inf`."""
        for (is_gradient, number, _), value in zip(
            flags, numbers_of(self._torch, [total for _, _, total in flags]), strict=True
        ):
            if not math.isfinite(value):
                yield is_gradient, number, "nan" if math.isnan(value) else "inf"

    def _first_forward(
        self, bad: dict[int, str], views: set[int], given: dict[int, list[Any]], *, since: int
    ) -> dict[str, Any] | None:
        """The operation that made the first NaN, or the infinity behind it; what is older than `since` was read before."""
        number = min((one for one, kind in bad.items() if kind == "nan"), default=None)
        if number is None:
            return None
        operation = self._flow.get(number)
        if operation is None:
            return None
        told = {"direction": "forward", "kind": "nan", "number": number, "operation": operation}
        came = self._taken_in(number, operation, given, since)
        if came is not None:
            return {**told, **came}
        sources = list(self._sources(operation, bad, views))
        for source, maker in sources:
            if data := self._infinite_data.brought(source) if maker.name in MOVES else None:
                return {**told, "kind": "inf", "number": source, "operation": maker, **data}
            if maker.name not in DELIBERATE:
                made = {**told, "kind": "inf", "number": source, "operation": maker}
                return {**made, **(self._as_made(source, maker, given, since) or {"then": operation})}
        return {**told, "mask": sources[0][1]} if sources and operation.name in FACTORS else told

    def _taken_in(
        self, number: int, operation: Operation, given: dict[int, list[Any]], since: int
    ) -> dict[str, Any] | None:
        """What an operation took that was not finite already: data, parameters, or memory that nothing has filled."""
        for leaf in self._leaves(operation):
            if not self._is_finite(leaf):
                loaded = self._loaded(number, operation)
                if not leaf.requires_grad:
                    return {**describe_data(leaf), **loaded}
                return {"input": self._parameter(leaf), "shape": list(leaf.shape), **broken_rows(leaf), **loaded}
        for one in given.get(number, ()):
            if not self._is_finite(one):
                return {"input": self._parameter(one), "shape": list(one.shape), **broken_rows(one)}
        if (allocated := self._allocated(operation)) is not None:
            return {"input": "unfilled", "operation": allocated}
        for one in (tensor for older in operation.inputs if older < since for tensor in self._flow.made_by(older)):
            if not one.requires_grad and not self._is_finite(one):
                return describe_data(one)
        if operation.name in MOVES and not operation.took_grad:  # made before the values of this step were watched
            made = next(iter(self._flow.made_by(number)), None)
            told = describe_data(made) if made is not None and made.is_floating_point() else {"input": "data"}
            return {**told, **self._loaded(number, operation)}
        return None

    def _as_made(self, number: int, operation: Operation, given: dict[int, list[Any]], since: int) -> dict[str, Any]:
        """Whether an operation that gives infinity has it of a parameter that no step has changed yet, or of data."""
        for one in (*self._leaves(operation), *given.get(number, ())):
            if one.requires_grad and self._parameter(one) == "untouched" and not self._is_finite(one):
                return {"input": "untouched", "shape": list(one.shape), **broken_rows(one)}
        return self._infinite_data.taken(operation, since)

    def _is_finite(self, tensor: Any) -> bool:
        return not tensor.is_floating_point() or bool(tensor.detach().isfinite().all())

    def _first_infinity(self, bad: dict[int, str], views: set[int]) -> dict[str, Any] | None:
        """The operation that made the infinity with which the step ended, of values that were finite."""
        last = max(bad)
        ending = self._flow.get(last)
        sources = list(self._sources(ending, bad, views)) if ending is not None else []
        if ending is not None and not sources:
            sources = [(last, ending)]
        for number, maker in sources:
            if maker.name not in DELIBERATE and maker.name not in MOVES:
                number, maker = self._divided_by(number, bad, views) or (number, maker)
                return {"direction": "forward", "kind": "inf", "number": number, "operation": maker}
            if told := self._infinite_data.brought(number) if maker.name in MOVES else None:
                return {"direction": "forward", "kind": "inf", "number": number, "operation": maker, **told}
        return None

    def _divided_by(self, number: int, bad: dict[int, str], views: set[int]) -> tuple[int, Operation] | None:
        """The source of an infinity that was divided by on the way: the 0 that it left is no fault of what met it."""
        for _, operation in islice(self._flow.upstream(number), MAX_MOVES):
            if operation.name in QUOTIENTS:
                for one in operation.inputs:
                    maker = self._flow.get(one) if one in bad else None
                    if maker is not None:
                        return next(iter(self._sources(maker, bad, views)), (one, maker))
        return None

    def saw_step(self, optimizer: Any) -> None:
        """An optimizer is about to step: what it owns is as the program made it where this is its first step.

        Nothing is known of a program that may have stepped before it was watched.
        """
        if self.may_have_stepped and not self._begun:
            return
        for group in optimizer.param_groups:
            for one in group["params"]:
                if id(one) not in self._begun:
                    own = one.to_local() if hasattr(one, "to_local") else one  # no word with other ranks
                    self._begun[id(one)] = own.is_meta or own.is_sparse or self._is_finite(own)
                    kept = getattr(optimizer, "state", {}).get(one)
                    if self._begun[id(one)] and isinstance(kept, dict) and is_damaged(kept):
                        self._moved_by_damage.add(id(one))

    def _parameter(self, parameter: Any = None) -> str:
        if id(parameter) in self._moved_by_damage:
            return "state"
        is_as_made = not self.may_have_stepped or self._begun.get(id(parameter)) is False
        return "untouched" if is_as_made else "parameter"

    def _leaves(self, operation: Operation) -> list[Any]:
        return [leaf for one in operation.leaves if (leaf := self._flow.leaf(one)) is not None]

    def _allocated(self, operation: Operation) -> Operation | None:
        """What gave an operation memory that nothing has written since, moved or not; None where it took none."""
        queue = [one for one in operation.inputs if one not in operation.wrote]
        for _ in range(MAX_MOVES):
            makers = [one for number in queue if (one := self._flow.get(number)) is not None]
            found = next((one for one in makers if one.name in EMPTY), None)
            if found is not None or not makers:
                return found
            queue = [number for one in makers if one.name in MOVES and not one.wrote for number in one.inputs]
        return None

    def _loaded(self, number: int, operation: Operation) -> dict[str, Any]:
        """What copies a value into a parameter, as from a checkpoint: then the weights are at fault and no data; else nothing."""
        for _ in range(MAX_MOVES):
            if operation.name == "copy_":
                is_parameter = operation.fills or any(
                    leaf.requires_grad or type(leaf) is self._types[1] for leaf in self._leaves(operation)
                )
                return {"input": "loaded", "operation": operation} if is_parameter else {}
            takers = [one for one in self._flow.consumers(number) if one[1].name in MOVES or one[1].name == "copy_"]
            if not takers:
                return {}
            number, operation = takers[0]
        return {}

    def _inputs(self, operation: Operation, views: set[int]) -> list[int]:
        """What an operation took, what it took a view of."""
        found = []
        for number in operation.inputs:
            maker = self._flow.get(number)
            while number in views and maker is not None:
                number = maker.inputs[0]
                maker = self._flow.get(number)
            found.append(number)
        return found

    def _sources(self, operation: Operation, bad: dict[int, str], views: set[int]) -> Iterator[tuple[int, Operation]]:
        """The operations upstream that made an infinity from finite values, nearest first."""
        taken = self._inputs(operation, views)
        queue, seen = [one for one in taken if one in bad], set(taken)
        while queue:
            number = queue.pop(0)
            maker = self._flow.get(number)
            if maker is None:
                continue
            further = [one for one in self._inputs(maker, views) if one in bad]
            if not further:
                yield number, maker
            queue.extend(one for one in further if one not in seen)
            seen.update(further)

    def _takers(self, number: int, views: set[int]) -> Iterator[tuple[int, Operation]]:
        """The operations that took what an operation made, or a view of it, in no order."""
        queue = [number]
        while queue:
            for one, operation in self._flow.consumers(queue.pop()):
                if one in views:
                    queue.append(one)
                else:
                    yield one, operation

    def _first_backward(self, bad: dict[int, str], known: set[int], views: set[int]) -> dict[str, Any] | None:
        """The operation whose backward made the first gradient that is not finite."""
        for number, kind in bad.items():
            takers = sorted(
                ((one, operation) for one, operation in self._takers(number, views) if one in known),
                key=lambda taker: taker[0],
            )
            makers = [(one, operation) for one, operation in takers if one not in bad]
            makers = [one for one in makers if one[1].name in STEEP] or makers
            if makers:
                one, operation = makers[-1]
                return {"direction": "backward", "kind": kind, "number": one, "operation": operation}
            if not takers:
                maker = self._flow.get(number)
                if maker is not None:
                    return {"direction": "backward", "kind": kind, "number": number, "operation": maker}
        return None

    def blame_leaf(self, tensor: Any) -> tuple[int, Operation] | None:
        """The operation that gave a leaf a gradient that is not finite, where no gradient before it was: its last taker."""
        return next(iter(self._flow.consumers_of_leaf(id(tensor))), None)


def _end_of_backward(flags: Sequence[tuple[bool, int, Any]], bad: int) -> int:
    """Where the backward ends in which an operation's gradient was bad first: one that follows differentiates what is newer.

    So does that of a gradient penalty, in whose graph every gradient is bad once one is.
    """
    at = next(index for index, (is_gradient, number, _) in enumerate(flags) if is_gradient and number == bad)
    newest = max((number for is_gradient, number, _ in flags[:at] if not is_gradient), default=bad)
    later = (index for index in range(at, len(flags)) if flags[index][0] and flags[index][1] > newest)
    return next(later, len(flags))


def numbers_of(torch: Any, scalars: Sequence[Any]) -> list[float]:
    """The values of 0-dim tensors: one transfer a device."""
    by_device: dict[Any, list[int]] = {}
    for index, one in enumerate(scalars):
        by_device.setdefault(one.device, []).append(index)
    found = [0.0] * len(scalars)
    for indices in by_device.values():
        values = torch.stack([scalars[index].float() for index in indices]).cpu().tolist()
        for index, value in zip(indices, values, strict=True):
            found[index] = value
    return found


def has_finite_sum(torch: Any, tensor: Any) -> bool:
    """Whether the values of a tensor are finite, read in one pass."""
    return bool(
        torch.isfinite(tensor.detach().sum(dtype=torch.float32) if tensor.element_size() < 4 else tensor.detach().sum())
    )
