"""Which tensors are not finite where a failure speaks of NaN or infinity: data, parameters, or neither.

One minimum and one maximum of each are read, computed on its own device: nothing is copied. Not behind an error of the device itself,
which would come back, or never return.
"""

from __future__ import annotations

import linecache
import re
from collections import UserDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from types import FrameType
from typing import Any

from .compare import held
from .storage import storage_of

MAX_ELEMENTS = 400_000_000  # a second or so on a CPU
MAX_TOLD = 4
MAX_LINES = 40  # of a module, above the line that runs
_SPEAKS = re.compile(r"\b(?:nans?|infs?|infinit\w*|(?:non[- ]?|in)?finite|diverg\w+|explod\w+)\b", re.IGNORECASE)
_OFF = re.compile(r"\b(?:no_grad|inference_mode|set_grad_enabled)\b")
_ASKS = re.compile(r"\bis_?(?:finite|nan|inf)\b")
# A device that failed, or ranks that wait: a question to it does not come back.
_DEVICE = re.compile(r"CUDA error|device-side assert|NCCL|\bHIP error|timed? ?out", re.IGNORECASE)


def not_finite(torch: Any, frames: Sequence[FrameType], roots: Sequence[Any], error: BaseException) -> dict[str, str]:
    """What of the program is not finite: `bad_data` and `bad_parameters` name it, `all_finite` says that nothing is.

    `frames` are the program's own, outermost first. Data is what needs no gradient and belongs to no module. No frame that
    switches gradients off is asked for data: there a result of the model looks the same. Buffers that are not finite are no proof
    of anything, since running statistics take in the data.
    """
    message = f"{type(error).__name__} {error}"
    asks = bool(frames) and _ASKS.search(linecache.getline(frames[-1].f_code.co_filename, frames[-1].f_lineno))
    if not (
        asks or _SPEAKS.search(message) or isinstance(error, (FloatingPointError, AssertionError))
    ) or _DEVICE.search(message):
        return {}
    reader = _Reader(torch)
    parameters = dict(_named_of(roots, "named_parameters"))
    buffers = dict(_named_of(roots, "named_buffers"))
    kept = {storage_of(one) for one in (*parameters.values(), *buffers.values())} - {None}
    data = _data(torch, [one for one in frames if not _switches_off(one)], kept)
    bad = [name for name, one in parameters.items() if reader.read(one) in ("nan", "inf")]
    for one in buffers.values():
        reader.read(one)
    bad_data = [name for name, one in data.items() if reader.read(one) == "nan"]
    found = {"bad_parameters": _told(bad), "bad_data": "" if bad else _told(bad_data)}
    if data and reader.is_all_finite:
        found["all_finite"] = f"{len(parameters)} parameters, {_told(list(data))}"
    return {name: told for name, told in found.items() if told}


def _named_of(roots: Sequence[Any], which: str) -> Iterator[tuple[str, Any]]:
    for root in roots:
        yield from ((f"{type(root).__name__}.{name}", one) for name, one in getattr(root, which)())


def _switches_off(frame: FrameType) -> bool:
    """Whether a function, up to where it is, speaks of switching gradients off; a `with` that failed has switched them on again."""
    code = frame.f_code
    first = frame.f_lineno - MAX_LINES if code.co_name == "<module>" else code.co_firstlineno
    lines = (linecache.getline(code.co_filename, at) for at in range(max(first, 1), frame.f_lineno + 1))
    return any(_OFF.search(line) for line in lines)


def _data(torch: Any, frames: Sequence[FrameType], kept: set[int | None]) -> dict[str, Any]:
    """The tensors of numbers that frames hold by name, or in a container behind a name, that no module made or keeps.

    Those of the innermost frame first, and in it the last ones: a batch before the table that it comes from.
    """
    found: dict[str, Any] = {}
    for frame in reversed(frames):
        for name, value in _named(frame):
            is_plain = type(value) is torch.Tensor and not value.requires_grad and value.is_floating_point()
            if is_plain and value.dim() and value.numel() and storage_of(value) not in kept:
                found[f"{name} in {frame.f_code.co_name}"] = value
    return found


def _named(frame: FrameType) -> Iterator[tuple[str, Any]]:
    for name, value in reversed(list(frame.f_locals.items())):
        yield name, value
        if isinstance(value, (dict, list, tuple, UserDict)) or (is_dataclass(value) and not isinstance(value, type)):
            yield from held(name, value)


def _told(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_TOLD} more" if len(names) > MAX_TOLD else ""
    return ", ".join(names[:MAX_TOLD]) + more


class _Reader:
    """Asks tensors whether they are finite, as long as the number of elements allows.

    An infinity alone is no fault of data: masks are filled with it, and so is the best value before the first.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._left = MAX_ELEMENTS
        self.is_all_finite = True

    def read(self, tensor: Any) -> str:
        """`nan`, `inf` or `finite`; "" where the tensor does not say."""
        if not tensor.is_floating_point() or not tensor.numel():
            return "finite"
        said, self._left = "", self._left - tensor.numel()
        if self._left >= 0:
            # On the meta device, or of a kind without a minimum; a tracer that is at work has nothing to see here.
            with suppress(Exception), self._torch._C.DisableTorchFunction():  # noqa: SLF001
                own = tensor.detach()
                own = own.to_local() if hasattr(own, "to_local") else own  # no word with other ranks
                ends = self._torch.stack(self._torch.aminmax(own))
                is_nan, is_finite = bool(ends.isnan().any()), bool(ends.isfinite().all())
                said = "nan" if is_nan else "finite" if is_finite else "inf"
        self.is_all_finite &= said == "finite"
        return said
