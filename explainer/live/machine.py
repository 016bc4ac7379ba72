"""What a program trains on and with: device, peak memory, autocast, activation checkpointing, compiled code."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable
from typing import Any


class Usage:
    """What the program was seen to use, noted as it happens."""

    def __init__(self) -> None:
        self.autocast: set[str] = set()
        self.has_checkpoint = False

    def watch(self) -> None:
        """Note when autocast is entered and when a segment is checkpointed."""
        self._watch_autocast()
        from .imports import after_import

        after_import("torch.utils.checkpoint", self._watch_checkpoint)

    def _watch_autocast(self) -> None:
        from torch.amp.autocast_mode import autocast

        enter = autocast.__enter__

        @functools.wraps(enter)
        def noted(this: Any) -> Any:
            if getattr(this, "_enabled", False):
                self.autocast.add(f"{this.device} {_plain(this.fast_dtype)}")
            return enter(this)

        autocast.__enter__ = noted

    def _watch_checkpoint(self, module: Any) -> None:
        checkpoint = module.checkpoint

        @functools.wraps(checkpoint)
        def noted(*arguments: Any, **keywords: Any) -> Any:
            self.has_checkpoint = True
            return checkpoint(*arguments, **keywords)

        # dynamo asks whether a function *is* torch.utils.checkpoint.checkpoint, and looks that up when it asks.
        module.checkpoint = noted

    def names(self) -> list[str]:
        """Which of "checkpoint" and "compile" were used."""
        dynamo = sys.modules.get("torch._dynamo.utils")
        frames = dynamo.counters["frames"]["ok"] if dynamo is not None and hasattr(dynamo, "counters") else 0
        return ["checkpoint"] * self.has_checkpoint + ["compile"] * bool(frames)


def look_at_machine(devices: Iterable[str]) -> dict[str, Any]:
    """The devices that hold the parameters, their names, and the peak of memory so far."""
    import torch

    devices = sorted(set(devices))
    cuda = [one for one in devices if one.startswith("cuda")]
    memory = sum(torch.cuda.max_memory_allocated(one) for one in cuda) if cuda else _resident()
    names = {torch.cuda.get_device_name(one) for one in cuda} or {_processor()}
    return {
        "device": ", ".join(devices),
        "name": ", ".join(sorted(names)),
        "memory": memory,
        "memory_of": "device" if cuda else "process",
        "tf32": bool(cuda) and bool(torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32),
        "torch": str(torch.__version__),
    }


def try_bf16(devices: Iterable[str]) -> bool | None:
    """Whether a small bfloat16 matmul gives what it should on the first GPU in use; None where none is."""
    import torch

    device = next((one for one in sorted(devices) if one.startswith("cuda")), None)
    if device is None:
        return None
    try:
        ones = torch.ones(16, 16, dtype=torch.bfloat16, device=device)
        return bool(((ones @ ones) == 16).all())
    except RuntimeError:
        return False


def wait_for_devices() -> None:
    """Let what was started on a GPU come to its end, so that a clock means something."""
    import torch

    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def is_capturing() -> bool:
    """Whether a CUDA graph is being captured: what would wait for the GPU, as reading a value does, breaks it."""
    import torch

    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def _plain(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _resident() -> int | None:
    """The most memory that the process has held; Linux counts in KiB, macOS in bytes."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else int(peak) * 1024


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            line = next((one for one in file if one.startswith("model name")), "")
    except OSError:
        line = ""
    return line.partition(":")[2].strip() or os.uname().machine
