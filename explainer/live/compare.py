"""What a rank has in common with the others, unless it is the odd one out: versions, device, shapes. Never values."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

MAX_TENSORS = 24
_PACKAGES = ("torch", "transformers", "accelerate", "deepspeed", "lightning", "peft", "numpy", "triton")


def software() -> dict[str, str]:
    """The versions of what is loaded, and the device that is in use; a GPU that the program has not touched stays so."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in _PACKAGES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    torch = sys.modules.get("torch")
    with suppress(Exception):  # builds without CUDA, and drivers, refuse in ways of their own
        if torch is not None:
            found["cuda"] = str(torch.version.cuda)
            if torch.cuda.is_initialized():
                found["gpu"] = str(torch.cuda.get_device_name())
                found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    found["threads"] = os.environ.get("OMP_NUM_THREADS", "")
    return found


def compared(error: BaseException) -> dict[str, Any]:
    """The tensors of the program's innermost own frame that the exception came through, by name: shape, dtype, device."""
    frame = _own_frame(error.__traceback__)
    torch = sys.modules.get("torch")
    if frame is None or torch is None or not hasattr(torch, "Tensor"):
        return {}
    tensors: dict[str, str] = {}
    for name, value in list(frame.f_locals.items())[:200]:
        if issubclass(type(value), torch.Tensor) and len(tensors) < MAX_TENSORS and not name.startswith("__"):
            with suppress(Exception):  # a nested tensor has no shape, and a subclass may refuse anything
                mode = " in inference mode" if value.is_inference() else ""
                kind = str(value.dtype).removeprefix("torch.")
                tensors[name] = f"{list(value.shape)} {kind} on {value.device.type}{mode}"
    return {"tensors": tensors, "at": f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_code.co_name}"}


def _own_frame(trace: TracebackType | None) -> FrameType | None:
    own = None
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename.replace("\\", "/")
        if "site-packages/" not in path and "/lib/python" not in path and not path.startswith("<frozen"):
            own = trace.tb_frame
        trace = trace.tb_next
    return own
