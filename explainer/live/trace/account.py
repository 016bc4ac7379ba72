"""What was seen, told as plain data: the writes, cuts, ways and values that a failure may come from."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from .carried import carried_over
from .flow import Flow, Operation
from .graph import Graphs, Pass, reaches_any, sequence_of
from .place import Place, describe
from .replay import Told
from .starved import FLAT, Starved
from .statistics import Statistics
from .write import Write, Writes

MAX_TOLD = 8
_MOVED = re.compile(
    r"modified by an inplace operation: \[[\w.]+ \[([\d, ]*)\]\].* is at version \d+; expected version (\d+)"
)
_FACTORIES = frozenset(
    ("zeros", "ones", "full", "tensor", "as_tensor", "scalar_tensor", "empty", "zeros_like", "ones_like", "full_like", "new_zeros",
     "new_ones", "new_full")
)  # fmt: skip
BUCKETS = frozenset(("bucketize", "searchsorted"))
# What hands integers on as they are, one beside the other or a part of them.
_PASSING = frozenset(
    ("cat", "concat", "stack", "hstack", "vstack", "__getitem__", "select", "view", "reshape", "flatten", "to", "long", "clone",
     "contiguous", "unsqueeze", "squeeze", "transpose", "t", "permute", "unbind", "chunk", "split", "expand", "detach", "pad",
     "pad_sequence", "index_select")
)  # fmt: skip
_EXPANDING = frozenset(("expand", "expand_as", "broadcast_to", "broadcast_tensors"))


class Account:
    """Reads what a tracer has logged; `numbers` are Python numbers that were read from tensors, with the operation that gave each."""

    def __init__(
        self, flow: Flow, graphs: Graphs, writes: Writes, numbers: Iterable[tuple[float, int]], statistics: Statistics
    ) -> None:
        self._flow = flow
        self._graphs = graphs
        self._writes = writes
        self._numbers = numbers
        self._statistics = statistics

    def hidden(self, node: Any, name: str, tensor: Any, write: Write, backward: Place | None) -> dict[str, Any]:
        """A write that autograd does not see, of what a node has saved for a backward."""
        return {
            **_told(write),
            "kind": "hidden-write",
            "node": node.name(),
            "parameter": _is_parameter(tensor),
            "state": not tensor.requires_grad and tensor.grad_fn is None,
            "read": self._reader(node, name),
            "backward": describe(backward),
        }

    def replayed(self, told: Told) -> dict[str, Any]:
        """A segment whose replay gives other values: the first operation that does, and what made it."""
        segment = told.parting.owner
        return {
            "operation": told.parting.name,
            **describe(told.parting.place),
            "segment": describe(segment.place),
            "moved_on": segment.moved_on,
            "write": _told(told.write) if told.write is not None else None,
            "parameter": told.is_parameter,
        }

    def expanded(self, told: Iterable[tuple[int, Place]]) -> list[dict[str, Any]]:
        """Tensors whose rows share memory, of which a part was written: the operation that expanded each."""
        found = []
        for number, write in told:
            upstream = (one for _, one in islice(self._flow.upstream(number), MAX_TOLD) if one.name in _EXPANDING)
            expanding = next(upstream, None)
            if expanding is not None:
                found.append({**operation_told(expanding), "write": describe(write)})
        return found

    def starved(self, starved: Starved) -> list[dict[str, Any]]:
        """The cuts that keep parameters of an optimizer from ever getting a gradient."""
        return [
            {
                **operation_told(one),
                "kind": "cut",
                "parameters": count,
                "off": describe(one.off) if one.off else None,
                "is_write": bool(one.wrote),
                "is_flat": one.name in FLAT and one.gave_grad,
                "is_number": one.is_number,
                "guess": not is_alone,
            }
            for one, count, is_alone in starved.cuts()[:MAX_TOLD]
        ]

    def written(self, moved: Iterable[tuple[Any, Any, str]]) -> list[dict[str, Any]]:
        """The first write into each saved tensor that moved, and the line that saved it: of those of a loop each line once."""
        found: dict[tuple[Any, ...], dict[str, Any]] = {}
        passes = self._graphs.passes
        thread = passes[-1].thread if passes else threading.get_ident()  # which may be over when this is asked
        for node, tensor, name in moved:
            number = sequence_of(node)
            if number is None or not hasattr(tensor, "untyped_storage"):
                continue
            writes = self._writes.after(tensor, number, thread)
            if writes:
                told = _told(writes[0])
                read = self._reader(node, name)
                lines = (
                    told["file"],
                    told["line"],
                    *((read["file"], read["line"]) if read is not None else (None, name)),
                )
                found.setdefault(lines, {**told, "kind": "write", "node": node.name(), "read": read})
            if len(found) >= MAX_TOLD:
                break
        return list(found.values())

    def named(self, message: str) -> list[dict[str, Any]]:
        """The one line that gave a tensor the version which a message names, where no node shows what moved.

        What a checkpointed segment was called with is kept by a function of torch's own, whose tensors cannot be asked for.
        """
        named = _MOVED.search(message)
        if named is None:
            return []
        shape = tuple(int(one) for one in named[1].split(",") if one.strip())
        writes = [one for one in self._writes.of_version(shape, int(named[2]) + 1) if one.place is not None]
        if len({one.place for one in writes}) != 1:
            return []
        operation = self._flow.get(writes[0].number)
        in_segment = operation is not None and operation.in_segment
        return [{**_told(writes[0]), "kind": "write", "node": None, "read": None, "in_segment": in_segment}]

    def _reader(self, node: Any, name: str) -> dict[str, Any] | None:
        """The line whose operation saved a tensor under a name."""
        number = sequence_of(node)
        reader = self._flow.maker_of_node(number) if number is not None else None
        if reader is None:
            return None
        place = self._statistics.reader(reader.sequence) if reader.name == "batch_norm" else None
        return {**describe(place or reader.place), "operation": reader.name, "saved": name}

    def indices(
        self, name: str, numbers: Sequence[int | None], is_refused: Callable[[Any], bool] | None
    ) -> list[dict[str, Any]]:
        """Where the values of the integers that an operation of that name refused were made, nearest first.

        Before all the operation that made one which is refused of integers of which none is, or of no integers at all.
        `is_edge` where it gives buckets of as many edges as there are rows: the last bucket has none.
        """
        upstream = [one for number in numbers if number is not None for one in self._flow.upstream(number)]
        turned = next((one for number, one in upstream if is_refused and self._turns(number, one, is_refused)), None)
        turned = turned or (self._turned_before(numbers, is_refused) if is_refused else None)
        found = [one for _, one in upstream if not one.inputs]
        told = [turned, *found] if turned is not None else found
        return [
            {
                **operation_told(one), "refused": name, "turned": one is turned,
                "is_edge": one is turned and is_refused is not None and self._is_edge(one, is_refused),
            }
            for one in told
        ][:MAX_TOLD]  # fmt: skip

    def _turns(self, number: int, operation: Operation, is_refused: Callable[[Any], bool]) -> bool:
        """Whether an operation was given integers that are allowed, or numbers, and made others; False where a tensor is gone."""
        made = [one for one in self._flow.made_by(number) if _counts(one)]
        if operation.name in BUCKETS:
            return any(map(is_refused, made))
        given = [[one for one in self._flow.made_by(each) if _counts(one)] for each in operation.inputs]
        known = [one for tensors in given for one in tensors]
        return bool(made and known) and any(map(is_refused, made)) and not any(map(is_refused, known))

    def _turned_before(self, numbers: Sequence[int | None], is_refused: Callable[[Any], bool]) -> Operation | None:
        """The line that made others of allowed integers, where these have only been joined, picked or laid out since."""
        todo, seen, found = [one for one in numbers if one is not None], set[int](), list[Operation]()
        while todo:
            number = todo.pop()
            operation = self._flow.get(number)
            if operation is None or number in seen:
                continue
            seen.add(number)
            if operation.name in _PASSING and operation.inputs:
                todo += operation.inputs
                continue
            given = [one for each in operation.inputs for one in self._flow.made_by(each) if _counts(one)]
            if not given or any(map(is_refused, given)):
                return None
            found.append(operation)
        return found[0] if found and len({one.place for one in found}) == 1 else None

    def _is_edge(self, operation: Operation, is_refused: Callable[[Any], bool]) -> bool:
        """Whether buckets have as many edges as a table has rows: the number of the edges is the first row that is refused."""
        if operation.name not in BUCKETS:
            return False
        edges = [one for each in operation.inputs for one in self._flow.made_by(each) if one.dim() == 1 and len(one)]
        new = [one.new_tensor([len(one) - 1, len(one)]).long() for one in edges]
        return any(bool(is_refused(one[1:])) and not bool(is_refused(one[:1])) for one in new)

    def cuts(self, loss: Any) -> list[dict[str, Any]]:
        """The operations on the way to a loss that took what required grad and gave what does not, nearest first.

        Nothing is told where all of them were there when an earlier backward of this very loss went well: then something else is.
        """
        number = self._flow.maker(loss)
        if number is None:
            return []
        found: list[dict[str, Any]] = []
        picked: set[int] = set()
        known = self._cut_before(self._graphs.went_before())
        is_new = False
        for each, one in self._flow.upstream(number):
            is_cut = one.took_grad and (not one.gave_grad or each in picked)
            if is_cut and (one.grad_mode or not one.in_segment):
                is_new = is_new or (one.place, one.name) not in known
                found.append({**operation_told(one), "kind": "cut", "off": describe(one.off) if one.off else None})
            if not one.took_grad:  # of what gives values and indices, `topk`, it took the indices
                picked.update(one.inputs)
        if found and not is_new:
            return []
        return found[:MAX_TOLD] or self._conversions()

    def _cut_before(self, number: int) -> set[tuple[Place | None, str]]:
        """The lines and operations that took what required grad and gave what does not, before an operation."""
        older = (one for each, one in self._flow.since(0) if each < number) if number else ()
        return {(one.place, one.name) for one in older if one.took_grad and not one.gave_grad}

    def _is_behind(self, operation: Operation) -> bool:
        """Whether an operation stands behind the failing backward in its function: in a loop, it ran in the round before."""
        place = self._graphs.passes[-1].place if self._graphs.passes else None
        return place is not None and operation.place is not None and (
            operation.place[0] is place[0] and operation.place[1] > place[1]
        )  # fmt: skip

    def constant(self, loss: Any) -> dict[str, Any] | None:
        """The operation that made a loss of no tensor at all: no data, no parameter, nothing of the model."""
        number = self._flow.maker(loss)
        upstream = [one for _, one in islice(self._flow.upstream(number), MAX_TOLD)] if number is not None else []
        is_fresh = all(
            not (one.leaves or one.took_grad or one.gave_grad) and (one.inputs or one.name in _FACTORIES)
            for one in upstream
        )
        return operation_told(upstream[-1]) if upstream and len(upstream) < MAX_TOLD and is_fresh else None

    def carried(self, loss: Any, passed: Pass, is_waiting: bool | None) -> list[dict[str, Any]]:  # noqa: FBT001
        """What a loss took over from the step whose backward used it up.

        `is_waiting` says that no optimizer has stepped since, None where there is none. `is_shared` where nothing that the
        backward trained was taken since either: it is no later step's loss, but another one of the same forward.
        """
        number, at = self._flow.maker(loss), passed.at
        if number is None:
            return []
        first = self._flow.get(at)
        is_new = number >= at and is_waiting is not False and first is not None
        is_shared = is_new and first is not None and not reaches_any(loss.grad_fn, first.sequence, passed.leaves)
        return [
            {
                **operation_told(one.made), "by": one.taken.name, "taken": describe(one.taken.place), "is_used": one.is_used,
                "is_mixed": one.is_mixed, "is_shared": is_shared and (bool(is_waiting) or not one.is_once),
                "is_once": one.is_once and not (is_shared and is_waiting), "is_waiting": bool(is_waiting),
            }
            for one in islice(carried_over(self._flow, number, at, max(at, self._graphs.began())), MAX_TOLD)
        ]  # fmt: skip

    def _conversions(self) -> list[dict[str, Any]]:
        """Where a tensor that required grad last became a Python number, if that is one line: the values went on from there."""
        found = {}
        for _, number in self._numbers:
            operation = self._flow.get(number)
            if operation is not None and operation.took_grad and not self._is_behind(operation):
                told = operation_told(operation)
                found[told["file"], told["line"]] = {**told, "kind": "cut", "guess": True}
        return list(found.values()) if len(found) == 1 else []


def _is_parameter(tensor: Any) -> bool:
    """Whether a tensor, or what it is a view of, is a leaf that trains."""
    base = tensor if tensor._base is None else tensor._base  # noqa: SLF001
    return bool(base.is_leaf and base.requires_grad)


def _told(write: Write) -> dict[str, Any]:
    return {
        "operation": write.name, **describe(write.place), "shape": list(write.shape), "version": write.version,
        "grad_mode": write.grad_mode,
    }  # fmt: skip


def _counts(tensor: Any) -> bool:
    """Whether a tensor holds integers."""
    return not tensor.is_floating_point() and not tensor.is_complex() and str(tensor.dtype) != "torch.bool"


def operation_told(operation: Operation) -> dict[str, Any]:
    """An operation and its line."""
    return {
        "operation": operation.name,
        **describe(operation.place),
        "grad_mode": operation.grad_mode,
        "replay": operation.replay,
        "node": operation.node,
    }
