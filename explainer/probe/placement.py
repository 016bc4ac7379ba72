"""Which devices a watched program gets: none, one, or all of them with the freest first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from explainer.errors import UsageError
from explainer.probe.gpu import read_gpus

Variables = tuple[tuple[str, str], ...]
VISIBLE = "CUDA_VISIBLE_DEVICES"
_ORDER = ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # the order in which NVML counts
_MARGIN_MIB = 1024


def place(choice: str, environment: Mapping[str, str]) -> Variables:
    """The variables that give a program the devices of `choice`: "auto", "cpu", "cuda" or "cuda:N".

    N counts the GPUs that are visible already. "auto" leaves a choice that the user has made in the environment; else it
    puts the GPU with the most free memory first, and hides none, so that launchers find as many as before.

    Raises:
        UsageError: another word, or no such GPU.
    """
    if choice == "cpu":
        return ((VISIBLE, ""), ("HIP_VISIBLE_DEVICES", ""))
    if choice == "auto":
        return () if VISIBLE in environment else by_freedom(_free_memory())
    found = re.fullmatch(r"cuda(?::(\d+))?", choice)
    if found is None:
        raise UsageError(f"--device {choice}: there are auto, cpu, cuda and cuda:N")
    visible = _visible(environment)
    if not visible:
        raise UsageError(f"--device {choice}: no GPU is visible on this machine")
    if found[1] is None:
        return ()
    if int(found[1]) >= len(visible):
        raise UsageError(f"--device {choice}: {len(visible)} visible on this machine, counted from 0")
    return ((VISIBLE, visible[int(found[1])]), *(() if VISIBLE in environment else (_ORDER,)))


def by_freedom(free: Sequence[int]) -> Variables:
    """All GPUs, the one with the most free memory first; nothing where the first one is about as free as any."""
    if len(free) < 2 or free[0] >= max(free) - _MARGIN_MIB:
        return ()
    order = sorted(range(len(free)), key=lambda index: -free[index])
    return ((VISIBLE, ",".join(map(str, order))), _ORDER)


def doubts_of_bf16(tried: Iterable[tuple[str, bool | None]]) -> tuple[str, ...]:
    """Where a bfloat16 matmul in the program (GPU's name, whether it worked) went otherwise than the probe says it can."""
    gpus = {one.name: one.bf16 for one in read_gpus(1.0).gpus or ()}
    told = []
    for name, works in tried:
        said = gpus.get(name)
        if said is not None and works is not None and said != works:
            told.append(
                f"a bfloat16 matmul {'works' if works else 'fails'} on {name}, which by its capability "
                f"{'has' if said else 'has no'} bfloat16 units"
            )
    return tuple(dict.fromkeys(told))


def _visible(environment: Mapping[str, str]) -> list[str]:
    """The GPUs that a program would see, as `CUDA_VISIBLE_DEVICES` names them."""
    if VISIBLE in environment:
        return [one.strip() for one in environment[VISIBLE].split(",") if one.strip() not in {"", "-1"}]
    return [str(index) for index in range(len(read_gpus(1.0).gpus or ()))]


def _free_memory() -> list[int]:
    """Free MiB of each GPU by NVML; nothing where it does not answer or a GPU is partitioned."""
    if not read_gpus(1.0).gpus:
        return []
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        if any(_is_partitioned(pynvml, one) for one in handles):
            return []
        return [int(pynvml.nvmlDeviceGetMemoryInfo(one).free) >> 20 for one in handles]
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def _is_partitioned(nvml: Any, handle: Any) -> bool:
    """Whether MIG is on; a GPU that cannot be partitioned says so by an error."""
    try:
        return bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    except nvml.NVMLError:
        return False
