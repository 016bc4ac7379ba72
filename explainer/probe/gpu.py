"""The GPUs of this machine: NVML, else `nvidia-smi`, else what the kernel knows of AMD devices."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from explainer.catalog.accelerator import describe_gpu
from explainer.model.environment import EnvironmentFact, Gpu, Unread

_SIGNS = ("/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg", "/usr/lib/wsl/lib/libnvidia-ml.so.1")
_KFD = "/sys/class/kfd/kfd/topology/nodes"


class Gpus(NamedTuple):
    """The GPUs that were seen (None where nothing could tell), the driver, and what could not be read."""

    gpus: tuple[Gpu, ...] | None
    facts: tuple[EnvironmentFact, ...] = ()
    unread: tuple[Unread, ...] = ()


def read_gpus(budget: float) -> Gpus:
    """The GPUs, within about `budget` seconds."""
    if not _may_have_nvidia():
        amd = _read_kfd()
        if amd:
            return Gpus(amd)
        return Gpus((), unread=(Unread(what="nvidia driver", why="no NVIDIA device file is on this machine"),))
    try:
        return _read_nvml()
    except Exception as error:  # noqa: BLE001 - a foreign library: any failure of it means "ask nvidia-smi"
        return _read_smi(budget, f"NVML: {type(error).__name__}: {error}")


def _may_have_nvidia() -> bool:
    return os.name == "nt" or any(os.path.exists(path) for path in _SIGNS)


def _read_nvml() -> Gpus:
    import pynvml

    pynvml.nvmlInit()
    try:
        gpus = tuple(_nvml_gpu(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount()))
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        cuda = pynvml.nvmlSystemGetCudaDriverVersion()
    finally:
        pynvml.nvmlShutdown()
    facts = (
        EnvironmentFact(name="driver", value=driver, source="NVML"),
        EnvironmentFact(name="driver_cuda", value=f"{cuda // 1000}.{cuda % 1000 // 10}", source="NVML"),
    )
    return Gpus(gpus, facts)


def _nvml_gpu(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle).total
    return describe_gpu(_text(nvml.nvmlDeviceGetName(handle)), "NVML", f"{major}.{minor}", int(memory) >> 20)


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _read_smi(budget: float, reason: str) -> Gpus:
    import subprocess

    fields = "name,memory.total,compute_cap,driver_version"
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=budget, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return Gpus(None, unread=(Unread(what="gpus", why=f"{reason}; nvidia-smi: {type(error).__name__}"),))
    rows = [[part.strip() for part in line.split(",")] for line in run.stdout.splitlines() if line.count(",") == 3]
    gpus = tuple(
        describe_gpu(name, "nvidia-smi", capability if re.fullmatch(r"\d+\.\d+", capability) else None, _mib(memory))
        for name, memory, capability, _ in rows
    )
    facts = (EnvironmentFact(name="driver", value=rows[0][3], source="nvidia-smi"),) if rows else ()
    return Gpus(gpus, facts, (Unread(what="NVML", why=reason),))


def _mib(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _read_kfd() -> tuple[Gpu, ...]:
    """AMD GPUs from the kernel's topology; a node without SIMD units is a CPU. bfloat16 is in CDNA2 (gfx90a) and later."""
    found: list[Gpu] = []
    try:
        nodes = sorted(os.listdir(_KFD))
    except OSError:
        return ()
    for node in nodes:
        properties = _kfd_properties(os.path.join(_KFD, node, "properties"))
        version = properties.get("gfx_target_version", 0)
        if properties.get("simd_count", 0) == 0 or version == 0:
            continue
        major, minor, step = version // 10000, version // 100 % 100, version % 100
        has_bf16 = (major, minor, step) >= (9, 0, 10)
        found.append(Gpu(name=f"AMD gfx{major}{minor:x}{step:x}", bf16=has_bf16, fp16=True, source=_KFD))
    return tuple(found)


def _kfd_properties(path: str) -> dict[str, int]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            pairs = [line.split() for line in file]
    except OSError:
        return {}
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
