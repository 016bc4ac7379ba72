"""A gradient in few numbers, so that those of two runs can be compared: whole where it is small, else projections of it."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any

WHOLE = 4096
MAX_WHOLE = 1 << 18  # values that a process keeps in all
MAX_DENSE = 1 << 26
PROJECTIONS = 8
WIDTH, ROWS = 1 << 16, 16
_DIRECTIONS: list[Any] = []


def values_of(gradient: Any) -> Any:
    """The numbers of a gradient as a plain real tensor: the local part of a sharded one, the stored part of a sparse one."""
    import torch

    values = gradient.detach()
    values = values.coalesce().values() if values.is_sparse else values
    values = values.to_local() if hasattr(values, "to_local") else values
    return torch.view_as_real(values) if values.is_complex() else values


def norms_of(values: Sequence[Any]) -> list[float]:
    """The norm of each tensor, summed up without a copy: in float32, and again in float64 where that overflows.

    The devices compute all of them before any is read: one transfer for each device and dtype, however many tensors there are.
    """
    import torch

    norms = [_norm(one, torch.promote_types(one.dtype, torch.float32)) for one in values]
    by_kind: dict[Any, list[int]] = {}
    for index, norm in enumerate(norms):
        by_kind.setdefault((norm.device, norm.dtype), []).append(index)
    found = [0.0] * len(norms)
    for indices in by_kind.values():
        for index, number in zip(indices, torch.stack([norms[index] for index in indices]).tolist(), strict=True):
            found[index] = number
    for index, one in enumerate(values):
        if not math.isfinite(found[index]) and one.device.type != "mps":  # it has no float64
            found[index] = float(_norm(one, torch.float64))
    return found


def _norm(values: Any, dtype: Any) -> Any:
    import torch

    try:
        return torch.linalg.vector_norm(values, dtype=dtype)
    except RuntimeError:  # a dtype that has no such sum
        return values.to(dtype).norm()


def summarise(name: str, gradient: Any, shape: Any, *, factor: float, whole: int) -> dict[str, Any]:
    """What is kept of a gradient: its values where there are at most `whole`, else projections; all times `factor`."""
    told: dict[str, Any] = {"name": name, "shape": list(shape)}
    if gradient is None:
        return {**told, "given": False}
    if gradient.is_sparse and gradient.numel() > MAX_DENSE:
        return {**told, "why_not": f"a sparse gradient of {gradient.numel()} elements"}
    values = values_of(gradient.to_dense() if gradient.is_sparse else gradient).reshape(-1)
    if values.device.type == "mps":  # it has no float64
        values = values.cpu()
    count = values.numel()
    if count <= min(WHOLE, whole):
        numbers = [factor * one for one in values.double().tolist()]
        told.update(
            values=numbers,
            norm=math.sqrt(math.fsum(one * one for one in numbers)),
            mean=math.fsum(numbers) / max(count, 1),
            largest=max((abs(one) for one in numbers), default=0.0),
        )
        return told
    total, square, largest, projections = _fold(values, shape)
    told.update(
        norm=factor * math.sqrt(square),
        mean=factor * total / count,
        largest=factor * largest,
        projections=[factor * one for one in projections],
    )
    return told


def _fold(values: Any, shape: Any) -> tuple[float, float, float, list[float]]:
    """Sum, sum of squares, largest size and projections, a million elements at a time so that memory stays.

    An element's sign in a direction is that of its column times that of its row: as good as independent signs for the
    size of a difference, and two small products instead of as many random numbers as there are elements.
    """
    import torch

    columns = _signs(WIDTH, 0, _DIRECTIONS).to(values.device)
    count = values.numel()
    rows = _signs(-(-count // WIDTH), zlib.crc32(repr(tuple(shape)).encode()) + 1).to(values.device)
    total, square, largest = (torch.zeros((), dtype=torch.float64, device=values.device) for _ in range(3))
    projections = torch.zeros(PROJECTIONS, dtype=torch.float64, device=values.device)
    for start in range(0, count, ROWS * WIDTH):
        part = values[start : start + ROWS * WIDTH].double()
        total, square, largest = (
            total + part.sum(),
            square + part.square().sum(),
            torch.maximum(largest, part.abs().max()),
        )
        part = torch.nn.functional.pad(part, (0, -part.numel() % WIDTH)).view(-1, WIDTH)
        first = start // WIDTH
        projections += ((part @ columns) * rows[first : first + part.shape[0]]).sum(0)
    return float(total), float(square), float(largest), [float(one) for one in projections]


def _signs(count: int, seed: int, kept: list[Any] | None = None) -> Any:
    """Signs in float64 from a generator of its own: the program's random numbers stay what they are."""
    import torch

    if kept:
        return kept[0]
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(0, 2, (count, PROJECTIONS), generator=generator, device="cpu").double() * 2 - 1
    if kept is not None:
        kept.append(signs)
    return signs
